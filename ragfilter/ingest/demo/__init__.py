"""The demo collection: an invented fantasy game's rules, with labelled questions.

Hundreds of chunks in which the noise problem is real: 84 attack matrices that differ in a number,
tables by range and by terrain that crowd out the rule one looks for, and a few referee's secrets
that most readers may not see. Everything here was written for this project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ragfilter.model import User

if TYPE_CHECKING:
    from ragfilter.ingest.demo.tables import Record

_CORPUS_FILES = ("rules.jsonl", "monsters.jsonl", "spells.jsonl", "items.jsonl", "travel.jsonl")
_LABEL_FILES = (
    ("queries.jsonl", "qrels.tsv"),
    ("queries-monsters.jsonl", "qrels-monsters.tsv"),
)

USERS = {"Guest": User(), "Player": User(1), "Referee": User(3, ("referee",))}
"""Who sits at the table: a guest sees the rules, a player a few notes, the referee the secrets."""


def records() -> Iterator[Record]:
    """Every chunk of the collection as a plain record, the tables first, in a fixed order."""
    # Imported here: the page takes its example questions from this package.
    from ragfilter.ingest.demo.tables import all_tables

    yield from all_tables()
    for name in _CORPUS_FILES:
        yield from _json_lines(name)


def queries() -> dict[str, str]:
    """The labelled questions: query id to text."""
    return {
        record["_id"]: record["text"] for name, _ in _LABEL_FILES for record in _json_lines(name)
    }


def qrels() -> dict[str, dict[str, int]]:
    """The relevance labels: query id to chunk id to score (2 needed, 1 helpful)."""
    labels: dict[str, dict[str, int]] = {}
    for _, name in _LABEL_FILES:
        for line in _lines(name)[1:]:
            query_id, chunk_id, score = line.split("\t")
            labels.setdefault(query_id, {})[chunk_id] = int(score)
    return labels


def _json_lines(name: str) -> Iterator[dict[str, Any]]:
    for line in _lines(name):
        yield json.loads(line)


def _lines(name: str) -> list[str]:
    """The non-empty lines of a file of this folder; none where the file is not there."""
    path = files(__package__).joinpath(name)
    if not path.is_file():
        return []
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
