"""spike: cut where the curve bends back. Source: `2diff_spike` of Adaptive-k, EMNLP 2025; docs/design.md#cutoff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ragfilter.layers.strategies.adaptive_k import cut as largest_drop
from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, cut_at, rising, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Cut where steps first shrink after growing, that is, the second differences change sign.

    As in the source, the hit after the bend is the last one kept. If there is no bend, the largest drop decides."""
    curve = rising(values, pinned)
    sizes = [right - left for left, right in pairwise(curve)]
    bends = [right - left for left, right in pairwise(sizes)]
    grew = False
    gaps = steps(values)
    for place, bend in enumerate(bends):
        rank = place + 2
        if grew and bend < -EPSILON and rank >= pinned and gaps[rank - 1].size >= 0:
            return cut_at("spike", rank, f"the curve bends after hit {rank}", gaps)
        grew = grew or bend > EPSILON
    drop = largest_drop(values, settings.model_copy(update={"b_extra": 0}), pinned, background)
    return replace(drop, strategy="spike", reason=f"no bend; {drop.reason}")


SPEC = StrategySpec(name="spike", cut=cut, reads=("max_results", "min_results", "tail"), cliff=lambda settings: "Bend")
