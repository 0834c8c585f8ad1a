"""car: cluster the ordered distances and cut between two clusters.

Source: Cluster-based Adaptive Retrieval (Xu, Gupta, Aggarwal, Mahadevan and Krishnamachari, 2025,
arXiv 2511.14769); docs/design.md#cutoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragfilter.layers.strategies.base import EPSILON, StrategySpec, cut_at, largest, rising, steps
from ragfilter.model import Cut

if TYPE_CHECKING:
    from ragfilter.layers.cutoff import Cutoff

MOST = 5
"""Clusters at most."""


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Cut at the largest gap between neighbouring clusters; as many clusters as have the best
    silhouette.

    The clusters of ordered values are runs, found exactly by k-means in one dimension. The paper
    also weighs where a boundary stands; that is left out, min_results serves for it.
    """
    curve, gaps = np.array(rising(values, pinned)), steps(values)
    n = len(curve)
    if n < 3 or curve[-1] - curve[0] <= EPSILON:
        return Cut("car", n, "no clusters; kept all", gaps)
    runs = [_runs(curve, k) for k in range(2, min(MOST, n - 1) + 1)]
    bounds = max(runs, key=lambda starts: _silhouette(curve, starts))
    free = [gaps[b - 1] for b in bounds if b >= pinned and gaps[b - 1].size > EPSILON]
    winner = largest(free)
    if winner is None:
        return Cut("car", n, "no gap between clusters; kept all", gaps)
    cliffs = {step.after_rank for step in free}
    marked = tuple(step._replace(cliff=step.after_rank in cliffs) for step in gaps)
    rank = winner.after_rank
    reason = f"largest gap between {len(bounds) + 1} clusters, after hit {rank}"
    return cut_at("car", marked[rank - 1], reason, marked)


def _runs(curve: NDArray[np.float64], k: int) -> tuple[int, ...]:
    """Where the second and each later of k runs begin, with the least squared error."""
    n = len(curve)
    curve = curve - curve[0]
    sums, squares = (np.concatenate([[0.0], np.cumsum(x)]) for x in (curve, curve * curve))

    def error(first: NDArray[np.intp], end: int) -> NDArray[np.float64]:
        total = sums[end] - sums[first]
        return np.asarray(squares[end] - squares[first] - total * total / (end - first))

    cost = np.array([np.inf, *(float(error(np.array([0]), e)[0]) for e in range(1, n + 1))])
    begins: list[list[int]] = []
    for _ in range(k - 1):
        after, begun = np.full(n + 1, np.inf), [0] * (n + 1)
        for end in range(2, n + 1):
            first = np.arange(1, end)
            every = cost[first] + error(first, end)
            begun[end] = 1 + int(np.argmin(every))
            after[end] = every[begun[end] - 1]
        cost = after
        begins.append(begun)
    found, end = [], n
    for begun in reversed(begins):
        end = begun[end]
        found.append(end)
    return tuple(reversed(found))


def _silhouette(curve: NDArray[np.float64], starts: Sequence[int]) -> float:
    """The mean silhouette; 0 for a hit that is alone in its run."""
    run = np.searchsorted(np.array(starts), np.arange(len(curve)), side="right")
    apart = np.abs(curve[:, None] - curve[None, :])
    to = np.stack([apart[:, run == r].mean(axis=1) for r in range(len(starts) + 1)], axis=1)
    size = np.bincount(run)[run]
    own = to[np.arange(len(curve)), run] * size / np.maximum(size - 1, 1)
    to[np.arange(len(curve)), run] = np.inf
    other = to.min(axis=1)
    most = np.maximum(np.maximum(own, other), EPSILON)
    return float(np.where(size > 1, (other - own) / most, 0.0).mean())


SPEC = StrategySpec(
    name="car",
    cut=cut,
    about="the largest gap between clusters of distances; needs no scale.",
    title="CAR",
    cliff=lambda settings: "Gap between clusters",
)
