"""The demo collection: an invented fantasy game's rules, with labelled questions.

It has hundreds of chunks with a real noise problem: 84 attack matrices that differ in one number,
tables by range and by terrain that crowd out the rule that you look for, and a few referee secrets
that most users cannot see. Everything here was written for this project.
"""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from ragfilter.model import User

FILES = ("tables", "rules", "monsters", "spells", "items", "travel")

USERS = {"Guest": User(), "Player": User(1), "Referee": User(3, ("referee",))}
"""Users at the table: a guest sees the rules, a player also some notes, the referee the secrets."""


def records() -> Iterator[dict[str, Any]]:
    """Every chunk of the collection as a plain record, in a fixed order."""
    for name in FILES:
        yield from read_json_lines(__name__, f"{name}.jsonl")


def queries() -> dict[str, str]:
    """The labelled questions: query id to text."""
    return read_queries(__name__, "queries.jsonl", "queries-monsters.jsonl")


def qrels() -> dict[str, dict[str, int]]:
    """The relevance labels: query id to chunk id to score (2 needed, 1 helpful)."""
    return read_qrels(__name__, "qrels.tsv", "qrels-monsters.tsv")


# files of a collection that comes as a package


def read_text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def read_json_lines(package: str, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file."""
    return map(json.loads, filter(str.strip, read_text(package, name).split("\n")))


def read_queries(package: str, *names: str) -> dict[str, str]:
    """Query id to text."""
    lines = (line for name in names for line in read_json_lines(package, name))
    return {line["_id"]: line["text"] for line in lines}


def read_qrels(package: str, *names: str) -> dict[str, dict[str, int]]:
    """Query id to chunk id to score (2 needed, 1 helpful)."""
    labels: dict[str, dict[str, int]] = {}
    for name in names:
        for line in read_text(package, name).splitlines()[1:]:
            query_id, chunk_id, score = line.split("\t")
            labels.setdefault(query_id, {})[chunk_id] = int(score)
    return labels
