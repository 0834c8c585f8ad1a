"""The limits that a filter must meet, and the queries that break them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragfilter.errors import InputError
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.run import QueryRow
from ragfilter.evaluate.table import figures_of
from ragfilter.evaluate.variants import IN_FORCE

FIGURES = ("precision", "recall", "f1", "kept", "lost")
"""The figures that can be limited: means of per-query values over the labelled queries."""
SHARES = ("precision", "recall", "f1")
EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class QueryFigures:
    """What a filter reached for one query. `relevant` is the number of relevant chunks that are
    there to be found."""

    id: str
    precision: float
    recall: float
    f1: float
    kept: int
    lost: int
    relevant: int

    def figure(self, name: str) -> float:
        """One of `FIGURES`."""
        return float(getattr(self, name))


def of_rows(rows: Sequence[QueryRow]) -> tuple[QueryFigures, ...]:
    """What an evaluation reached."""
    return tuple(
        QueryFigures(
            row.id, scores.precision, scores.recall, scores.f1, row.filtered.kept,
            len(row.lost), len(row.relevant),
        )
        for row in rows
        for scores in [row.filtered.scores]
    )  # fmt: skip


def of_records(records: Sequence[QueryRecord]) -> tuple[QueryFigures, ...]:
    """What the settings of a run reached."""
    found = figures_of(records, IN_FORCE)
    scores = zip(found["precision"], found["recall"], found["f1"], strict=True)
    return tuple(
        QueryFigures(
            record.id, float(precision), float(recall), float(f1), record.kept[IN_FORCE].chunks,
            record.lost, record.relevant,
        )
        for record, (precision, recall, f1) in zip(records, scores, strict=True)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure, and the value that its mean must reach (`least`) or must not exceed."""

    figure: str
    value: float
    least: bool


@dataclass(frozen=True, slots=True)
class Check:
    """A limit with the actual mean. `worst` are the queries that break the limit themselves, worst
    first."""

    limit: Limit
    mean: float
    worst: tuple[tuple[str, float], ...]

    @property
    def passed(self) -> bool:
        limit = self.limit
        if limit.least:
            return self.mean >= limit.value - EPSILON
        return self.mean <= limit.value + EPSILON


def read_limit(text: str, *, least: bool, option: str, among: Sequence[str] = FIGURES) -> Limit:
    """Parse ``f1=0.6``, given with `option`, as a limit on one of `among`. Raises InputError."""
    figure, sign, number = text.partition("=")
    figure = figure.strip()
    if not sign or figure not in among:
        raise InputError(
            f"{option} {text} is not a limit on a known figure.",
            remedy=f"Write {option} FIGURE=NUMBER with one of: {', '.join(among)}.",
        )
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    most = 1.0 if figure in SHARES else float("inf")
    if not 0 <= value <= most or value == float("inf"):
        allowed = "from 0 to 1" if figure in SHARES else "of at least 0"
        raise InputError(
            f"{option} {text}: {number!r} is not a number {allowed}.",
            remedy=f"Write {option} {figure}=NUMBER.",
        )
    return Limit(figure, value, least)


def check(reached: Sequence[QueryFigures], limits: Sequence[Limit]) -> tuple[Check, ...]:
    """Compare every limit with the actual figures."""
    return tuple(_check(reached, limit) for limit in limits)


def _check(reached: Sequence[QueryFigures], limit: Limit) -> Check:
    values = {one.id: one.figure(limit.figure) for one in reached}
    beyond = [
        (query_id, value)
        for query_id, value in values.items()
        if (value < limit.value - EPSILON if limit.least else value > limit.value + EPSILON)
    ]
    worst = tuple(sorted(beyond, key=lambda pair: pair[1], reverse=not limit.least))
    return Check(limit, sum(values.values()) / len(values), worst)
