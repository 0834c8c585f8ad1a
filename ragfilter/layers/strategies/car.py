"""car: cluster the ordered distances and cut between two clusters.

Source: Cluster-based Adaptive Retrieval (Xu, Gupta, Aggarwal et al., 2025, arXiv 2511.14769); docs/design.md#cutoff.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, cut_at, largest, rising, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff

MAX_RUNS = 5
"""Maximum number of clusters."""


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Cut at the largest gap between neighbouring clusters, using the best number by silhouette.

    Clusters are runs of the ordered values, found exactly by k-means in one dimension. The paper also weighs the
    position of a boundary, but min_results does that job."""
    curve, gaps = np.array(rising(values, pinned)), steps(values)
    n = len(curve)
    if n < 3 or curve[-1] - curve[0] <= EPSILON:
        return Cut("car", n, "no clusters; kept all", gaps)
    bounds = max(_runs(curve, min(MAX_RUNS, n - 1)), key=lambda starts: _silhouette(curve, starts))
    free = [gaps[b - 1] for b in bounds if b >= pinned and gaps[b - 1].size > EPSILON]
    winner = largest(free)
    if winner is None:
        return Cut("car", n, "no gap between clusters; kept all", gaps)
    rank = winner.after_rank
    reason = f"largest gap between {len(bounds) + 1} clusters, after hit {rank}"
    return cut_at("car", rank, reason, gaps, {step.after_rank for step in free})


def _runs(curve: NDArray[np.float64], most: int) -> list[tuple[int, ...]]:
    """The starts of all runs but the first, with the least squared error, for each number of runs from 2 to `most`."""
    n = len(curve)
    curve = curve - curve[0]
    sums, squares = (np.concatenate([[0.0], np.cumsum(x)]) for x in (curve, curve * curve))
    first, end = np.arange(n + 1)[:, None], np.arange(n + 1)[None, :]
    total = sums[end] - sums[first]
    error = squares[end] - squares[first] - total * total / np.maximum(end - first, 1)
    error = np.where(first < end, error, np.inf)
    # Indexed by the end of a run: the error up to there, and the start of the last run.
    cost = error[0]
    begins: list[NDArray[np.intp]] = []
    runs = []
    for _ in range(2, most + 1):
        every = cost[:, None] + error
        begins.append(every.argmin(axis=0))
        cost = every.min(axis=0)
        bounds = [n]
        for begun in reversed(begins):
            bounds.append(int(begun[bounds[-1]]))
        runs.append(tuple(reversed(bounds[1:])))
    return runs


def _silhouette(curve: NDArray[np.float64], starts: Sequence[int]) -> float:
    """The mean silhouette; a hit that is alone in its run counts 0."""
    run = np.searchsorted(np.array(starts), np.arange(len(curve)), side="right")
    apart = np.abs(curve[:, None] - curve[None, :])
    to = np.stack([apart[:, run == r].mean(axis=1) for r in range(len(starts) + 1)], axis=1)
    size = np.bincount(run)[run]
    own = to[np.arange(len(curve)), run] * size / np.maximum(size - 1, 1)
    to[np.arange(len(curve)), run] = np.inf
    other = to.min(axis=1)
    most = np.maximum(np.maximum(own, other), EPSILON)
    return float(np.where(size > 1, (other - own) / most, 0.0).mean())


SPEC = StrategySpec(name="car", cut=cut, cliff=lambda settings: "Gap between clusters")
