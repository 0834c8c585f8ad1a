"""autocut: cut before a jump of the curve, as Weaviate defines it. docs/design.md#cutoff."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, cut_at, rising, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Cut before the `jumps`-th peak of the scaled values over their diagonal.

    Because of the scaling, falling scores and rising distances are cut alike."""
    peaks = _peaks(values, pinned)
    gaps = tuple(step._replace(cliff=step.after_rank in peaks) for step in steps(values))
    jumps = settings.jumps
    if len(peaks) < jumps:
        shortage = "no jump" if not peaks else f"only {len(peaks)} of {jumps} jumps"
        return Cut("autocut", len(values), f"{shortage}; kept all", gaps)
    rank = peaks[jumps - 1]
    return cut_at("autocut", rank, f"jump {jumps} before rank {rank + 1}", gaps, peaks)


def _peaks(values: Sequence[float], pinned: int) -> list[int]:
    """0-based indices at which the curve, scaled to 0..1, is above its diagonal and neighbours."""
    curve = rising(values, pinned)
    span = curve[-1] - curve[0]
    if len(curve) <= 2 or abs(span) <= EPSILON:
        return []
    last = len(curve) - 1
    over = [(value - curve[0]) / span - i / last for i, value in enumerate(curve)]
    neighbours = [(i, i - 1, i + 1) for i in range(1, last)] + [(last, last - 1, last - 2)]
    return [i for i, a, b in neighbours if i >= pinned and over[i] > over[a] + EPSILON and over[i] > over[b] + EPSILON]


SPEC = StrategySpec(
    name="autocut",
    cut=cut,
    reads=("max_results", "min_results", "jumps"),
    cliff=lambda settings: f"Jump {settings.jumps}",
)
