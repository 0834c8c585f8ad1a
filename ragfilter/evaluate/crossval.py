"""Cross-validation: settings chosen on some queries are measured on others.

A table holds a score for each query (row) and each candidate (column). Candidates are chosen by
their mean over the other folds only. Intervals are bootstrapped over queries. Pure; numpy and
scipy, seeded, so that the same labels give the same figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragfilter.extras import extra

SEED = 0
RESAMPLES = 2000
BATCH = 250

Table = NDArray[np.float64]
"""Scores: one row per query, one column per candidate. Picked scores have one value per query."""
Choice = NDArray[np.intp]
"""A fold or a candidate for each query."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over queries with its bootstrapped 95% interval."""

    mean: float
    low: float
    high: float


def assign_folds(queries: int, folds: int) -> Choice:
    """The fold of each query, at random and of equal size; no more folds than queries.

    Raises ValueError for fewer than two queries or folds, because nothing could be held out.
    """
    if min(queries, folds) < 2:
        raise ValueError("cross-validation needs at least two queries and two folds")
    places = np.arange(queries) % min(folds, queries)
    return np.random.default_rng(SEED).permutation(places)


def choose(table: Table) -> int:
    """The candidate with the highest mean, the first of several."""
    means = table.mean(axis=0)
    return int(np.argmax(means >= means.max() - 1e-12))


def held_out(table: Table, folds: Choice) -> Choice:
    """For each query, the candidate that is best on the queries of the other folds."""
    chosen = np.empty(len(folds), dtype=np.intp)
    for fold in np.unique(folds):
        chosen[folds == fold] = choose(table[folds != fold])
    return chosen


def pick(table: Table, chosen: Choice) -> Table:
    """The score of each query with the candidate chosen for it."""
    return np.take_along_axis(table, chosen[:, None], axis=1)[:, 0]


def bootstrap(values: Table) -> Interval:
    """The bootstrapped mean of one figure per query. Pass differences for the interval of a gain.

    If all values are equal, or there is only one, the interval is that value: nothing is known
    about others.
    """
    mean = float(values.mean())
    if np.ptp(values) == 0:
        return Interval(mean, mean, mean)
    with extra("eval"):
        from scipy.stats import bootstrap as resample

    made = resample(
        (values,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=SEED
    ).confidence_interval
    return Interval(mean, float(made.low), float(made.high))


def bootstrap_each(table: Table) -> tuple[Interval, ...]:
    """The interval of every column, with the same resamples of queries for all. Seeded as
    `bootstrap`, so that a single column gives the same interval."""
    mean = table.mean(axis=0)
    if len(table) < 2:
        return tuple(Interval(float(m), float(m), float(m)) for m in mean)
    with extra("eval"):
        from scipy.stats import bootstrap as resample

    made = resample(
        (table,), np.mean, axis=0, n_resamples=RESAMPLES, batch=BATCH, method="percentile", rng=SEED
    ).confidence_interval
    return tuple(
        Interval(float(m), float(low), float(high))
        for m, low, high in zip(mean, made.low, made.high, strict=True)
    )
