"""gap: cut at the largest gap in distance.

Source: Adaptive Filtering Algorithm and Adaptive Result Filtering; docs/design.md#cutoff."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, cut_at, largest, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Cut at the largest gap ≥ `gap_threshold` or, if there is none, at best + offset."""
    threshold = settings.gap_threshold
    first = max(pinned, 2 if settings.skip_first else 1)
    gaps = [step._replace(skipped=step.after_rank < first) for step in steps(values)]
    least = max(0.0, threshold - EPSILON)
    large = [step for step in gaps if step.size >= least]
    cliffs = [step for step in large if not step.skipped]
    winner = largest(cliffs)
    if winner is not None:
        reason = f"gap {winner.size:.3f} ≥ {threshold:.3f} after hit {winner.after_rank}"
        return cut_at("gap", winner.after_rank, reason, gaps, {step.after_rank for step in cliffs})
    best = min(values)
    limit = best + settings.distance_offset
    free = values[pinned:]
    beyond = next((i for i, value in enumerate(free) if value > limit + EPSILON), len(free))
    lacks = f"no {'later ' if large else ''}gap ≥ {threshold:.3f}"
    reason = f"{lacks}; kept values ≤ {limit:.3f} (best {best:.3f} + {settings.distance_offset:.3f})"
    return Cut("gap", pinned + beyond, reason, tuple(gaps), limit=limit)


SPEC = StrategySpec(
    name="gap",
    cut=cut,
    reads=("max_results", "min_results", "gap_threshold", "distance_offset", "skip_first"),
    cliff=lambda settings: "Cliff",
    decides=lambda cut: "gap_threshold" if cut.cliff_after_rank else "distance_offset",
)
