"""Expectations of rules as data: a question, the chunks that must stay, the chunks that must go.

One JSON object per line: ``{"question": "…", "stay": ["id", …], "go": ["id", …]}``. A chunk stays
if the question meets its rule, or if it has none. Distances do not matter, so a check needs no
model and gives the same answer everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ragfilter.errors import InputError
from ragfilter.evaluate.query_files import json_objects
from ragfilter.rules.match import RuleBook

Wanted = Literal["stay", "go"]
KEYS = ("question", "stay", "go")
FORM = 'Write {"question": "…", "stay": ["id"], "go": ["id"]}.'
NO_CHUNK = "the collection has no such chunk"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of the file, by its 1-based number."""

    line: int
    question: str
    stay: tuple[str, ...] = ()
    go: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[tuple[str, Wanted], ...]:
        """Each chunk with its expected outcome."""
        return (*((i, "stay") for i in self.stay), *((i, "go") for i in self.go))


@dataclass(frozen=True, slots=True)
class Broken:
    """A chunk that did not behave as expected, with the matcher's reason."""

    line: int
    question: str
    chunk_id: str
    must: Wanted
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of expectations: how many were `tested`, one per chunk."""

    questions: int
    tested: int
    broken: tuple[Broken, ...]


def read_expectations(path: Path) -> tuple[Expectation, ...]:
    """Read the expectations in a file, in order. Raises InputError naming the line."""
    expectations = tuple(_read(where, record) for where, record in json_objects(path, FORM))
    if not expectations:
        raise InputError(f"{path} contains no expectations.", remedy=FORM)
    return expectations


def check_rules(expectations: Sequence[Expectation], rules: Mapping[str, str | None]) -> Outcome:
    """Check `rules` (chunk id to rule text, None for no rule) against the expectations. Those about
    other chunks are broken: a chunk that the user may not see is as if it did not exist."""
    named = [i for expected in expectations for i, _ in expected.wanted]
    book = RuleBook(filter(None, {rules.get(i) for i in named}))
    broken: list[Broken] = []
    for expected in expectations:
        scan = book.scan(expected.question)
        for chunk_id, must in expected.wanted:
            if chunk_id not in rules:
                reason = NO_CHUNK
            else:
                check = scan.check(rules[chunk_id])
                if check.passes == (must == "stay"):
                    continue
                reason = check.reason
            broken.append(Broken(expected.line, expected.question, chunk_id, must, reason))
    return Outcome(len(expectations), len(named), tuple(broken))


def _read(where: str, record: dict[str, Any]) -> Expectation:
    unknown = next((key for key in record if key not in KEYS), None)
    if unknown is not None:
        raise InputError(f"{where}: unknown key {unknown!r}.", remedy=FORM)
    question = record.get("question")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"{where} has no question.", remedy=FORM)
    stay = _ids(record.get("stay", []), "stay", where)
    go = _ids(record.get("go", []), "go", where)
    if not stay and not go:
        raise InputError(f"{where} expects nothing.", remedy=FORM)
    both = next((i for i in stay if i in go), None)
    if both is not None:
        raise InputError(f"{where}: {both!r} must both stay and go.", remedy="Keep one of them.")
    return Expectation(int(where.rpartition(" ")[2]), question, stay, go)


def _ids(value: Any, key: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(i, str) and i for i in value):
        raise InputError(f"{where}: {key} is not a list of chunk ids.", remedy=FORM)
    return tuple(dict.fromkeys(value))
