"""moving_avg: cut at the largest drop of a moving average. Source: Adaptive-k, EMNLP 2025; docs/design.md#cutoff."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, cut_at, largest, rising, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff

WINDOW = 3


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Cut where the mean of three neighbours rises most, so that a single outlier makes no cliff.

    As in the source, the step between the windows that begin at hits i and i + 1 counts for hit i."""
    curve, gaps = rising(values, pinned), steps(values)
    means = [fmean(curve[i : i + WINDOW]) for i in range(len(curve) - WINDOW + 1)]
    free = [step for step in steps(means) if step.after_rank >= pinned and step.size > EPSILON]
    # If a later hit is nearer than the one before it, there is no cliff.
    winner = largest([step for step in free if gaps[step.after_rank - 1].size >= 0])
    if winner is None:
        return Cut("moving_avg", len(values), "no drop of the moving average; kept all", gaps)
    rank = winner.after_rank
    reason = f"the moving average drops most, by {winner.size:.3f}, after hit {rank}"
    return cut_at("moving_avg", rank, reason, gaps)


SPEC = StrategySpec(name="moving_avg", cut=cut, cliff=lambda settings: "Largest drop of the average")
