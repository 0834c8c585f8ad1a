"""Cross-validation: settings chosen on some queries are measured on others.

A table holds a score for each query (row) and each candidate (column). Candidates are chosen by
their mean over the other folds only. Intervals are bootstrapped over queries. Pure; numpy and
scipy, seeded, so that the same labels give the same figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragfilter.basics.extras import extra
from ragfilter.text.normalise import normalise

SEED = 0
EPSILON = 1e-12
FOLDS = 5
RESAMPLES = 2000
BATCH = 250
LEAST = 6
"""With fewer queries that differ, no two-sided permutation test can reach 0.05: 2 / 2⁵ = 0.0625."""

Table = NDArray[np.float64]
"""Scores: one row per query, one column per candidate. Picked scores have one value per query."""
Tables = Mapping[str, Table]
"""Every figure with its scores."""
Choice = NDArray[np.intp]
"""A fold or a candidate for each query."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over queries with its bootstrapped 95% interval. `differing` is how many of the values
    are not 0: a few that all have one sign have an interval without 0, too."""

    mean: float
    low: float
    high: float
    differing: int = 0

    @property
    def shows_gain(self) -> bool:
        """Whether a mean above 0 is more than chance."""
        return self.low > 0 and self.differing >= LEAST

    @property
    def shows_loss(self) -> bool:
        """Whether a mean below 0 is more than chance."""
        return self.high < 0 and self.differing >= LEAST


def assign_folds(queries: int, folds: int) -> Choice:
    """The fold of each query, at random and of equal size; no more folds than queries.

    Raises ValueError for fewer than two queries or folds, because nothing could be held out.
    """
    if min(queries, folds) < 2:
        raise ValueError("cross-validation needs at least two queries and two folds")
    places = np.arange(queries) % min(folds, queries)
    return np.random.default_rng(SEED).permutation(places)


def folds_of(queries: Sequence[str], folds: int) -> Choice:
    """The fold of each query. Queries with the same text share one: what suits one of them would
    otherwise have been chosen on the other. If all have the same text, nothing can be held out but
    single queries. Raises ValueError as `assign_folds` does."""
    texts = list(map(normalise, queries))
    groups = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(groups) == 1:
        return assign_folds(len(texts), folds)
    return assign_folds(len(groups), folds)[[groups[text] for text in texts]]


def choose(table: Table) -> int:
    """The candidate with the highest mean, the first of several."""
    means = table.mean(axis=0)
    return int(np.argmax(means >= means.max() - EPSILON))


def pick(table: Table, chosen: Choice) -> Table:
    """The score of each query with the candidate chosen for it."""
    return np.take_along_axis(table, chosen[:, None], axis=1)[:, 0]


def picked(tables: Tables, chosen: Choice) -> Tables:
    """Every figure of each query with the candidate chosen for it."""
    return {name: pick(table, chosen) for name, table in tables.items()}


def bootstrap(values: Table) -> Interval:
    """The bootstrapped mean of one figure per query. Pass differences for the interval of a gain.

    If all values are equal, or there is only one, the interval is that value: nothing is known
    about others.
    """
    return bootstrap_each(values[:, None])[0]


def bootstrap_each(table: Table) -> tuple[Interval, ...]:
    """The interval of every column, with the same resamples of queries for all. Seeded."""
    low = high = mean = table.mean(axis=0)
    if np.ptp(table, axis=0).any():
        with extra("eval"):
            from scipy.stats import bootstrap as resample

        made = resample(
            (table,), np.mean, axis=0, n_resamples=RESAMPLES, batch=BATCH, method="percentile",
            rng=SEED,
        ).confidence_interval  # fmt: skip
        low, high = made.low, made.high
    differing = np.count_nonzero(np.abs(table) > EPSILON, axis=0)
    columns = zip(mean.tolist(), low.tolist(), high.tolist(), differing.tolist(), strict=True)
    return tuple(Interval(*column) for column in columns)
