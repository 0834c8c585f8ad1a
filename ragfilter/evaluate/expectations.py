"""Expectations of rules as data: a question, the chunks that must stay, the chunks that must go.

One JSON object per line: ``{"question": "…", "stay": ["id", …], "go": ["id", …]}``. A chunk stays
if the question meets its rule, or if it has none. Distances do not matter, so a check needs no
model and gives the same answer everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from ragfilter.basics.files import TomlTable, check_table, json_objects
from ragfilter.errors import InputError
from ragfilter.rules.match import RuleBook

Wanted = Literal["stay", "go"]
FORM = 'Write {"question": "…", "stay": ["id"], "go": ["id"]}.'
NO_CHUNK = "the collection has no such chunk"


class Expectation(TomlTable):
    """One line of the file, by its 1-based number."""

    line: int
    question: str
    stay: list[str] = Field(default_factory=list)
    go: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _expects_one_outcome(self) -> Self:
        if not self.wanted:
            raise ValueError("it expects nothing")
        if both := {*self.stay} & {*self.go}:
            raise ValueError(f"{min(both)!r} must both stay and go")
        return self

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
    expectations = tuple(
        check_table(
            record | {"line": int(where.rpartition(" ")[2])}, Expectation, where, remedy=FORM
        )
        for where, record in json_objects(path, FORM)
    )
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
