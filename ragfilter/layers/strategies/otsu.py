"""otsu: split the distances into a near and a far class.

Source: Otsu, "A threshold selection method from gray-level histograms", 1979; docs/design.md#cutoff."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, cut_at, rising, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Cut where the variance between the kept and the dropped class is largest.

    With i of n values kept, and sums S and T of the two classes, that variance is proportional to (S (n − i) − T i)² /
    (i (n − i)); the first of equals wins. Multiplying all values or adding a constant does not move the cut. Values
    that differ are always split, a straight line in the middle."""
    curve = rising(values, pinned)
    n, total = len(curve), sum(curve)
    sums = list(accumulate(curve))
    gaps = steps(values)
    apart: dict[int, float] = {}
    for i, near in enumerate(sums[:-1], start=1):
        if i >= pinned and gaps[i - 1].size > EPSILON:
            apart[i] = (near * (n - i) - (total - near) * i) ** 2 / (i * (n - i))
    if not apart:
        return Cut("otsu", n, "no two classes; kept all", gaps)
    most = max(apart.values())
    rank = next(rank for rank, value in apart.items() if value >= most * (1 - EPSILON))
    return cut_at("otsu", rank, f"near and far class part after hit {rank}", gaps)


SPEC = StrategySpec(name="otsu", cut=cut, cliff=lambda settings: "Split")
