"""The limits that an evaluation must meet, and the queries that break them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ragfilter.errors import InputError
from ragfilter.evaluate.run import Evaluation, QueryRow

FIGURES: Mapping[str, Callable[[QueryRow], float]] = {
    "precision": lambda row: row.filtered.scores.precision,
    "recall": lambda row: row.filtered.scores.recall,
    "f1": lambda row: row.filtered.scores.f1,
    "kept": lambda row: float(row.filtered.kept),
    "lost": lambda row: float(len(row.lost)),
}
"""The figures that can be limited: means of per-query values over the labelled queries."""
SHARES = ("precision", "recall", "f1")
EPSILON = 1e-9


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


def read_limit(text: str, *, least: bool, option: str) -> Limit:
    """Parse ``f1=0.6``, given with `option`, as a limit. Raises InputError."""
    figure, sign, number = text.partition("=")
    figure = figure.strip()
    if not sign or figure not in FIGURES:
        raise InputError(
            f"{option} {text} is not a known figure.",
            remedy=f"Write {option} FIGURE=NUMBER with one of: {', '.join(FIGURES)}.",
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


def check(evaluation: Evaluation, limits: Sequence[Limit]) -> tuple[Check, ...]:
    """Compare every limit with the actual figures."""
    return tuple(_check(evaluation.rows, limit) for limit in limits)


def _check(rows: Sequence[QueryRow], limit: Limit) -> Check:
    read = FIGURES[limit.figure]
    values = {row.id: read(row) for row in rows}
    beyond = [
        (query_id, value)
        for query_id, value in values.items()
        if (value < limit.value - EPSILON if limit.least else value > limit.value + EPSILON)
    ]
    worst = tuple(sorted(beyond, key=lambda pair: pair[1], reverse=not limit.least))
    return Check(limit, sum(values.values()) / len(values), worst)
