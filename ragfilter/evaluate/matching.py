"""Two settings over one query set, found among the saved runs. Pure.

A run measures every honest alternative beside its own settings, so that what is looked for is often
there already, as a row of another run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ragfilter.evaluate.paired import Paired, compare
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.runs import variants_of
from ragfilter.evaluate.table import figures_of
from ragfilter.settings.schema import Settings
from ragfilter.stores.runs import Plan, Run


@dataclass(frozen=True, slots=True)
class Found:
    """Where settings were measured: a row of a run."""

    run: Run
    variant: str


@dataclass(frozen=True, slots=True)
class Change:
    """One query under both sides."""

    id: str
    query: str
    f1: tuple[float, float]
    chunks: tuple[int, int]
    tokens: tuple[int, int]

    @property
    def gain(self) -> float:
        """What b does better."""
        return self.f1[1] - self.f1[0]


@dataclass(frozen=True, slots=True)
class Duel:
    """Two sides over the queries that both were measured with, those that changed most first."""

    paired: Paired
    changes: tuple[Change, ...]

    @property
    def worst(self) -> Change | None:
        """The severest single loss, None where there is none."""
        lost = [each for each in self.changes if each.gain < 0]
        return min(lost, key=lambda each: each.gain, default=None)

    def mean(self, figure: str, side: int) -> float:
        """The mean of ``f1``, ``chunks`` or ``tokens`` of one side, 0 or 1."""
        values = [getattr(each, figure)[side] for each in self.changes]
        return float(sum(values) / len(values)) if values else 0.0


def find(settings: Settings, wanted: Plan, runs: Iterable[Run]) -> Iterator[Found]:
    """The rows that measured `settings` under the plan `wanted`, whose own settings do not matter.
    A run of an earlier version may lack its row all the same."""
    for run in runs:
        same = replace(run.plan, profile=wanted.profile, changes=wanted.changes)
        if not run.complete or same != wanted:
            continue
        for variant in variants_of(run):
            if variant.settings == settings and not variant.plain:
                yield Found(run, variant.name)


def duel(
    a: Sequence[QueryRecord], variant_a: str, b: Sequence[QueryRecord], variant_b: str
) -> Duel:
    """B against A, query by query."""
    sides = [
        {record.id: (f1, record.kept[name], record.query)
         for record, f1 in zip(records, figures_of(records, name)["f1"].tolist(), strict=True)}
        if records else {}
        for records, name in ((a, variant_a), (b, variant_b))
    ]  # fmt: skip
    made = compare(*({i: f1 for i, (f1, _, _) in side.items()} for side in sides))
    changes = []
    for i, _ in made.changes:
        (f1_a, kept_a, query), (f1_b, kept_b, _) = sides[0][i], sides[1][i]
        changes.append(
            Change(i, query, (f1_a, f1_b), (kept_a.chunks, kept_b.chunks),
                   (kept_a.tokens, kept_b.tokens))
        )  # fmt: skip
    return Duel(made, tuple(changes))
