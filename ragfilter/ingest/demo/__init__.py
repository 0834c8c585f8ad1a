"""The demo collection: an invented fantasy game's rules, with labelled questions. It has hundreds of chunks with a real
noise problem: 84 attack matrices that differ in one number, tables by range and by terrain that crowd out the rule that
you look for, and a few referee secrets that most users cannot see. Everything here was written for this project."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragfilter.basics.files import json_objects, read_lines
from ragfilter.model import User

FOLDER = Path(__file__).parent
FILES = ("tables", "rules", "monsters", "spells", "items", "travel")

USERS = {"Guest": User(), "Player": User(1), "Referee": User(3, ("referee",))}
"""Users at the table: a guest sees the rules, a player also some notes, the referee the secrets."""


def records() -> Iterator[dict[str, Any]]:
    """Every chunk of the collection as a plain record, in a fixed order."""
    for name in FILES:
        yield from (record for _, record in json_objects(FOLDER / f"{name}.jsonl", ""))


def queries() -> dict[str, str]:
    """The labelled questions: query id to text."""
    return read_queries(FOLDER, "queries.jsonl", "queries-monsters.jsonl")


def qrels() -> dict[str, dict[str, int]]:
    """The relevance labels: query id to chunk id to score (2 needed, 1 helpful)."""
    return read_qrels(FOLDER, "qrels.tsv", "qrels-monsters.tsv")


def read_queries(folder: Path, *names: str) -> dict[str, str]:
    """Query id to text."""
    return {row["_id"]: row["text"] for name in names for _, row in json_objects(folder / name, "")}


def read_qrels(folder: Path, *names: str) -> dict[str, dict[str, int]]:
    """Query id to chunk id to score (2 needed, 1 helpful)."""
    labels: dict[str, dict[str, int]] = {}
    for name in names:
        _, *lines = read_lines(folder / name)
        for query_id, chunk_id, score in (line.split("\t") for line in lines):
            labels.setdefault(query_id, {})[chunk_id] = int(score)
    return labels
