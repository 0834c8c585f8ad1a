"""The demo collection: an invented fantasy game's rules, with labelled questions.

Hundreds of chunks in which the noise problem is real: 84 attack matrices that differ in a number,
tables by range and by terrain that crowd out the rule one looks for, and a few referee's secrets
that most readers may not see. Everything here was written for this project.
"""

from collections.abc import Iterator
from typing import Any

from ragfilter.ingest import packaged
from ragfilter.model import User

FILES = ("tables", "rules", "monsters", "spells", "items", "travel")

USERS = {"Guest": User(), "Player": User(1), "Referee": User(3, ("referee",))}
"""Who sits at the table: a guest sees the rules, a player a few notes, the referee the secrets."""


def records() -> Iterator[dict[str, Any]]:
    """Every chunk of the collection as a plain record, in a fixed order."""
    for name in FILES:
        yield from packaged.read_json_lines(__name__, f"{name}.jsonl")


def queries() -> dict[str, str]:
    """The labelled questions: query id to text."""
    return packaged.read_queries(__name__, "queries.jsonl", "queries-monsters.jsonl")


def qrels() -> dict[str, dict[str, int]]:
    """The relevance labels: query id to chunk id to score (2 needed, 1 helpful)."""
    return packaged.read_qrels(__name__, "qrels.tsv", "qrels-monsters.tsv")
