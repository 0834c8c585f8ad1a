"""relative: keep hits that are clearly nearer than the background. docs/design.md#cutoff."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Keep values ≤ best + a × (background − best), where a is `relative_offset`.

    A model or space that doubles all distances doubles both, so the same a still works where the absolute offset of
    `gap` would not. The background is the mean of the pool's farther half, so the pool must be much larger than the
    number of relevant chunks."""
    best, share = min(values), settings.relative_offset
    limit = best + share * max(0.0, background - best)
    free = values[pinned:]
    beyond = next((i for i, value in enumerate(free) if value > limit + EPSILON), len(free))
    reason = f"kept values ≤ {limit:.3f} (best {best:.3f}, {share:.2f} of the way to the background {background:.3f})"
    return Cut("relative", pinned + beyond, reason, steps(values), limit=limit)


SPEC = StrategySpec(
    name="relative",
    cut=cut,
    reads=("max_results", "min_results", "relative_offset"),
    cliff=lambda settings: f"{settings.relative_offset:.3f} of the way to the background",
    decides=lambda cut: "relative_offset",
    reads_pool=True,
)
