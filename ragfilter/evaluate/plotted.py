"""The data of a run's plots, for the page and the report. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragfilter.evaluate.crossval import FOLDS, Table, Target, choose, folds_of, pick, picked
from ragfilter.evaluate.metrics import f_measure
from ragfilter.evaluate.prefixes import without_nothing
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.table import prefixes_of
from ragfilter.evaluate.variants import IN_FORCE

DEEP = 30
"""How many ranks of a distance curve are drawn."""
THRESHOLDS = 200
"""Number of distances among which the best is looked for."""


@dataclass(frozen=True, slots=True)
class LabelPoint:
    """A labelled chunk on the distance curve of its query."""

    rank: int
    distance: float
    relevant: bool


@dataclass(frozen=True, slots=True)
class BestDistance:
    """The single distance that works best as a threshold for all queries. `f1` is held out: every
    query is measured with the distance that is best on the other folds."""

    distance: float
    f1: float


def fixed_line(records: Sequence[QueryRecord]) -> tuple[tuple[float, float], ...]:
    """Every fixed k as (recall, precision)."""
    ranked = without_nothing(prefixes_of(records))
    recall, precision = (ranked[name].mean(axis=0).tolist() for name in ("recall", "precision"))
    return tuple(zip(recall, precision, strict=True))


def frontier(records: Sequence[QueryRecord]) -> tuple[tuple[float, float], ...]:
    """The oracle's line as (recall, precision): for every weight of recall against precision, the
    mean over each query's best prefix."""
    orders = prefixes_of(records)
    points = []
    for beta in (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0):
        best = np.argmax(f_measure(orders["precision"], orders["recall"], beta), axis=1)
        means = {name: float(values.mean()) for name, values in picked(orders, best).items()}
        points.append((means["recall"], means["precision"]))
    return tuple(sorted(set(points)))


def kept_counts(records: Sequence[QueryRecord]) -> tuple[int, ...]:
    """How many queries keep 0, 1, 2 … chunks with the run's settings."""
    counts = Counter(record.kept[IN_FORCE].chunks for record in records)
    return tuple(counts[n] for n in range(max(counts) + 1))


def marks(records: Sequence[QueryRecord]) -> tuple[LabelPoint, ...]:
    """Every labelled chunk among the first `DEEP` of each query."""
    return tuple(
        LabelPoint(rank, distance, grade > 0)
        for record in records
        for rank, (distance, grade) in enumerate(
            zip(record.curve.distances[:DEEP], record.curve.grades, strict=False), start=1
        )
        if grade >= 0
    )


def within(records: Sequence[QueryRecord], threshold: float) -> Mapping[str, float]:
    """The means of every measure if the chunks up to this distance were kept, of each query's first
    `DEEPEST`."""
    last = _last_up_to(records, np.array([threshold]))[:, 0]
    found = picked(prefixes_of(records), last)
    return {name: float(values.mean()) for name, values in found.items()}


def best_distance(records: Sequence[QueryRecord]) -> BestDistance | None:
    """The best distance; None with fewer than two queries, since none could be held out, or without
    chunks."""
    distances = [d for record in records for d in record.curve.distances]
    if len(records) < 2 or not distances:
        return None
    thresholds = np.quantile(distances, np.linspace(0, 1, THRESHOLDS), method="nearest")
    last = _last_up_to(records, thresholds)
    f1 = np.take_along_axis(prefixes_of(records)["f1"], last, axis=1)
    honest = pick(f1, Target().held_out({"f1": f1}, folds_of([r.query for r in records], FOLDS)))
    return BestDistance(float(thresholds[choose(f1)]), float(honest.mean()))


def _last_up_to(records: Sequence[QueryRecord], thresholds: Table) -> NDArray[np.intp]:
    """The column of `prefixes_of` for every query and threshold; −1, the last column, keeps
    nothing."""
    kept = [np.searchsorted(r.curve.distances, thresholds, side="right") for r in records]
    return np.array(kept, dtype=np.intp) - 1
