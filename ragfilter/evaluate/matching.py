"""Finds two settings over one query set among the saved runs. Pure.

A run measures many alternatives to its own settings. So the wanted settings often already exist as
a row of another run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragfilter.evaluate.paired import Paired, compare
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.runs import variants_of
from ragfilter.evaluate.table import figures_of
from ragfilter.settings.schema import Settings
from ragfilter.stores.runs import Plan, Run


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """Where settings were measured: a row of a run."""

    run: Run
    variant: str


@dataclass(frozen=True, slots=True)
class QueryChange:
    """One query with both sides. `unlabelled` is the number of kept chunks without a label, and
    `f1_most` is F1 if all of them were relevant."""

    id: str
    query: str
    f1: tuple[float, float]
    chunks: tuple[int, int]
    tokens: tuple[int, int]
    unlabelled: tuple[int, int]
    f1_most: tuple[float, float]

    @property
    def gain(self) -> float:
        """How much better b is."""
        return self.f1[1] - self.f1[0]


@dataclass(frozen=True, slots=True)
class Duel:
    """Two sides over the queries that were measured for both, most changed first."""

    paired: Paired
    changes: tuple[QueryChange, ...]

    @property
    def worst(self) -> QueryChange | None:
        """The largest loss of a single query, None if there is none."""
        lost = [each for each in self.changes if each.gain < 0]
        return min(lost, key=lambda each: each.gain, default=None)

    def mean(self, figure: str, side: int) -> float:
        """The mean of a figure for one side, 0 or 1."""
        values = [getattr(each, figure)[side] for each in self.changes]
        return float(sum(values) / len(values)) if values else 0.0


def find(settings: Settings, wanted: Plan, runs: Iterable[Run]) -> Iterator[MeasuredRow]:
    """The rows that measured `settings` under the plan `wanted`, whatever the plan's own settings
    are. A run made by an earlier version may lack its row."""
    for run in runs:
        same = replace(run.plan, profile=wanted.profile, changes=wanted.changes)
        if not run.complete or same != wanted:
            continue
        for variant in variants_of(run):
            if variant.settings == settings and not variant.plain:
                yield MeasuredRow(run, variant.name)


def duel(
    a: Sequence[QueryRecord], variant_a: str, b: Sequence[QueryRecord], variant_b: str
) -> Duel:
    """Compare b with a, query by query. Different questions may have the same id: those are not
    compared."""
    asked = [{record.id: record.query for record in records} for records in (a, b)]
    both = {i for i in asked[0] if asked[1].get(i) == asked[0][i]}
    sides = [
        _by_id([record for record in records if record.id in both], variant)
        for records, variant in ((a, variant_a), (b, variant_b))
    ]
    made = compare(*({i: each["f1"] for i, each in side.items()} for side in sides))
    changes = []
    for i, _ in made.changes:
        one, other = sides[0][i], sides[1][i]
        changes.append(
            QueryChange(i, asked[0][i], **{name: (one[name], other[name]) for name in one})
        )
    return Duel(made, tuple(changes))


def _by_id(records: Sequence[QueryRecord], variant: str) -> dict[str, dict[str, Any]]:
    """The values that a `QueryChange` needs of one variant, by query."""
    if not records:
        return {}
    figures = figures_of(records, variant)
    return {
        record.id: {
            "f1": float(figures["f1"][place]),
            "chunks": record.kept[variant].chunks,
            "tokens": record.kept[variant].tokens,
            "unlabelled": record.kept[variant].unlabelled,
            "f1_most": float(figures["f1_most"][place]),
        }
        for place, record in enumerate(records)
    }
