"""Cross-validation: settings chosen on some queries are measured on others.

A table of scores has a row for each query and a column for each candidate. Candidates are chosen by their mean over the
other folds only. Pure; numpy and scipy, seeded, so the same labels give the same figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragfilter.errors import InputError, extra
from ragfilter.text.normalise import normalise

SEED = 0
EPSILON = 1e-12
FOLDS = 5
MIN_QUERIES, MIN_DIFFERENT = 8, 2
"""Minimum number of queries for an interval, and of queries that differ from the most frequent
value. With fewer, it would cover less than 95% (tests/evaluate/test_coverage.py)."""
FEW_QUERIES = 20
"""With fewer labelled queries than this, the figures say little."""
TELLING = 6
"""Minimum number of nonzero values for an interval to exclude 0; with five, no permutation test reaches 0.05."""

Table = NDArray[np.float64]
"""Scores: one row per query, one column per candidate. Picked scores have one value per query."""
Tables = Mapping[str, Table]
"""The scores of each figure, by its name."""
Choice = NDArray[np.intp]
"""A fold or a candidate for each query."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over queries, with the ends of its 95% interval. The ends are None if too few queries differ."""

    mean: float
    ends: tuple[float, float] | None

    @property
    def shows_gain(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.ends is not None and self.ends[0] > 0

    @property
    def shows_loss(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.ends is not None and self.ends[1] < 0

    def mapped(self, to: Callable[[float], float]) -> Interval:
        """The interval in another unit, such as a price. `to` may swap its ends."""
        ends = self.ends and (to(self.ends[0]), to(self.ends[1]))
        return Interval(to(self.mean), ends and (min(ends), max(ends)))


def assign_folds(queries: int, folds: int) -> Choice:
    """The fold of each query, at random. Folds have equal size, and there are at most as many as
    queries. Raises ValueError for fewer than two queries or folds: nothing could be held out."""
    if min(queries, folds) < 2:
        raise ValueError("cross-validation needs at least two queries and two folds")
    places = np.arange(queries) % min(folds, queries)
    return np.random.default_rng(SEED).permutation(places)


def folds_of(queries: Sequence[str], folds: int) -> Choice:
    """The fold of each query. Queries with the same text share a fold, since one must not be measured with what was
    chosen on the other, unless all have the same text. Raises ValueError as `assign_folds` does."""
    texts = list(map(normalise, queries))
    groups = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(groups) == 1:
        return assign_folds(len(texts), folds)
    return assign_folds(len(groups), folds)[[groups[text] for text in texts]]


def pick(table: Table, chosen: Choice) -> Table:
    """The score of each query with the candidate chosen for it."""
    return np.take_along_axis(table, chosen[:, None], axis=1)[:, 0]


def picked(tables: Tables, chosen: Choice) -> Tables:
    """All figures of each query with the candidate chosen for it."""
    return {name: pick(table, chosen) for name, table in tables.items()}


def interval(values: Table) -> Interval:
    """The interval of a figure's mean, from one value per query. For a gain, pass differences."""
    return intervals(values[:, None])[0]


def intervals(table: Table, least: ArrayLike = -np.inf, most: ArrayLike = np.inf) -> tuple[Interval, ...]:
    """The interval of every column: Student's t, widened to Hall's where skewness requires it. The
    degrees of freedom are the number of values that differ from the most frequent one (n − 1
    without ties). `least` and `most` limit the ends, for all columns or for each.

    Source: Hall, "On the Removal of Skewness by Transformation", 1992."""
    # Exact sums, so that the order of the queries changes no digit.
    n, mean = len(table), np.array([fmean(column) for column in table.T.tolist()])
    differing = n - _most_equal(table)
    low = high = mean
    if n >= MIN_QUERIES:
        with extra("eval"):
            from scipy.special import stdtrit

        apart = table - mean
        spread = table.std(axis=0, ddof=1)
        # Equal values have no skewness.
        third = (apart**3).mean(axis=0) / np.maximum(table.std(axis=0), EPSILON) ** 3
        reach = stdtrit(np.maximum(differing, 1), 0.975) / np.sqrt(n)
        ends = np.stack([_skewed(y, third, n) for y in (-reach, reach)])
        low = mean - spread * np.maximum(reach, ends[1])
        high = mean - spread * np.minimum(-reach, ends[0])
        open_to_0 = np.count_nonzero(np.abs(table) > EPSILON, axis=0) < TELLING
        low = np.clip(np.where(open_to_0, np.minimum(low, 0.0), low), least, most)
        high = np.clip(np.where(open_to_0, np.maximum(high, 0.0), high), least, most)
    columns = zip(mean.tolist(), low.tolist(), high.tolist(), differing.tolist(), strict=True)
    return tuple(
        Interval(at, (first, last) if n >= MIN_QUERIES and differ >= MIN_DIFFERENT else None)
        for at, first, last, differ in columns
    )


def _most_equal(table: Table) -> NDArray[np.intp]:
    """How often the most frequent value of every column occurs."""
    ordered = np.sort(table, axis=0)
    runs, longest = np.ones(table.shape[1:], np.intp), np.ones(table.shape[1:], np.intp)
    for before, after in pairwise(ordered):
        runs = np.where(after - before <= EPSILON, runs + 1, 1)
        longest = np.maximum(longest, runs)
    return longest


def _skewed(t: Table, skewness: Table, n: int) -> Table:
    """The standardised distance of the mean at which Hall's transformation reaches `t`."""
    # As skewness goes to 0, the formula goes to `t`; a tiny skewness avoids dividing by 0.
    bend = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness) / 3
    return (np.cbrt(1 + 3 * bend * (t - skewness / (6 * n))) - 1) / bend


CHOSEN_BY = ("f1", "f2", "recall", "tokens")
"""The figures that a target may use."""


@dataclass(frozen=True, slots=True)
class Target:
    """``f1``, ``f2``, or ``tokens@0.8``: the fewest tokens with a mean recall of 0.8."""

    figure: Literal["f1", "f2", "tokens"] = "f1"
    recall: float = 0.0

    def __str__(self) -> str:
        return f"tokens@{self.recall:g}" if self.figure == "tokens" else self.figure

    @property
    def oracle(self) -> Literal["f1", "f2"]:
        """The figure that the best prefix of a ranking maximises."""
        return "f2" if self.figure == "f2" else "f1"

    def choose(self, tables: Tables) -> int:
        """The best candidate, the first one if tied. If none reaches the recall, the one that comes closest."""
        if self.figure != "tokens":
            means = tables[self.figure].mean(axis=0)
            return int(np.argmax(means >= means.max() - EPSILON))
        recall = tables["recall"].mean(axis=0)
        least = min(self.recall, recall.max()) - 1e-12
        return int(np.argmin(np.where(recall >= least, tables["tokens"].mean(axis=0), np.inf)))

    def best(self, figures: Iterable[Tables]) -> int:
        """The place of the best of these, which have a value for each query."""
        each = [*figures]
        return self.choose({name: np.stack([one[name] for one in each], axis=1) for name in CHOSEN_BY})

    def held_out(self, tables: Tables, folds: Choice) -> Choice:
        """For each query, the candidate that is best on the queries of the other folds."""
        chosen = np.empty(len(folds), dtype=np.intp)
        for fold in np.unique(folds):
            rest = folds != fold
            chosen[~rest] = self.choose({name: table[rest] for name, table in tables.items()})
        return chosen


def read_target(text: str) -> Target:
    """Parse a target. Raises InputError."""
    targets = {"f1": Target("f1"), "f2": Target("f2")}
    if text in targets:
        return targets[text]
    match = re.fullmatch(r"tokens@(0?\.\d+|1(?:\.0+)?)", text)
    if match and float(match[1]):
        return Target("tokens", float(match[1]))
    raise InputError(
        f"There is no measure {text!r}.",
        remedy="Use f1, f2, or the fewest tokens at a given recall, such as tokens@0.8.",
    )
