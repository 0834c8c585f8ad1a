"""The cutoff strategies: how many of a list of values stay, and why. One function each.

Source: `gap`, `fixed`: Adaptive Filtering Algorithm and Adaptive Result Filtering. `autocut`: as
Weaviate defines it. `adaptive_k`: Adaptive-k, EMNLP 2025. All: docs/design.md#cutoff.

Every strategy takes the values that are looked at (lower is better, pins first), the settings and
how many values are pins. It returns its own wish: `layers.cutoff.cut` then holds it to min_results,
max_results and the pins. A step between two pins, or a step down, is never a cliff.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragfilter.model import Cut, Gap

if TYPE_CHECKING:
    from ragfilter.layers.cutoff import Cutoff

EPSILON = 1e-9
TAIL = 0.1

StrategyName = Literal["gap", "fixed", "autocut", "adaptive_k"]
Strategy: TypeAlias = "Callable[[Sequence[float], Cutoff, int], Cut]"


def gap(values: Sequence[float], settings: Cutoff, pinned: int) -> Cut:
    """Cut at the largest step ≥ `gap_threshold`, the first one skipped; else best + offset."""
    threshold = settings.gap_threshold
    gaps = []
    for step in steps(values):
        skipped = step.after_rank == 1 or step.after_rank < pinned
        cliff = not skipped and step.size >= max(0.0, threshold - EPSILON)
        gaps.append(replace(step, skipped=skipped, cliff=cliff))
    winner = largest([step for step in gaps if step.cliff])
    if winner is not None:
        reason = f"gap {winner.size:.3f} ≥ {threshold:.3f} after hit {winner.after_rank}"
        return _cut_at("gap", winner, reason, tuple(gaps))
    best = min(values)
    limit = best + settings.distance_offset
    free = values[pinned:]
    beyond = next((i for i, value in enumerate(free) if value > limit + EPSILON), len(free))
    reason = (
        f"no gap ≥ {threshold:.3f}; "
        f"kept values ≤ {limit:.3f} (best {best:.3f} + {settings.distance_offset:.3f})"
    )
    return Cut("gap", pinned + beyond, reason, tuple(gaps), limit=limit)


def fixed(values: Sequence[float], settings: Cutoff, pinned: int) -> Cut:
    """Keep the first k."""
    return Cut("fixed", len(values), f"first {settings.max_results}", steps(values))


def autocut(values: Sequence[float], settings: Cutoff, pinned: int) -> Cut:
    """Cut before the `jumps`-th peak of the scaled values over their diagonal.

    The scaling makes it blind to direction: falling scores are cut as rising distances are.
    """
    peaks = _peaks(values, pinned)
    gaps = tuple(replace(step, cliff=step.after_rank in peaks) for step in steps(values))
    jumps = settings.jumps
    if len(peaks) < jumps:
        found = "no jump" if not peaks else f"only {len(peaks)} of {jumps} jumps"
        return Cut("autocut", len(values), f"{found}; kept all", gaps)
    winner = gaps[peaks[jumps - 1] - 1]
    return _cut_at("autocut", winner, f"jump {jumps} before rank {winner.after_rank + 1}", gaps)


def adaptive_k(values: Sequence[float], settings: Cutoff, pinned: int) -> Cut:
    """Cut at the largest step outside the last tenth, then keep `b_extra` more.

    A drop of similarity is proportional to the step of distance, so the steps decide alike.
    """
    n = len(values)
    tail = max(1, int(n * TAIL)) if n > 3 else 0
    gaps = [
        replace(step, skipped=step.after_rank < pinned or step.after_rank >= n - tail)
        for step in steps(values)
    ]
    winner = largest([step for step in gaps if not step.skipped and step.size > EPSILON])
    if winner is None:
        return Cut("adaptive_k", n, "no drop outside the tail; kept all", tuple(gaps))
    reason = f"largest drop {winner.size:.3f} after hit {winner.after_rank}"
    if settings.b_extra:
        reason += f", and {settings.b_extra} more"
    marked = tuple(replace(step, cliff=step is winner) for step in gaps)
    cut = _cut_at("adaptive_k", winner, reason, marked)
    return replace(cut, kept=min(cut.kept + settings.b_extra, n))


STRATEGIES: dict[StrategyName, Strategy] = {
    "gap": gap,
    "fixed": fixed,
    "autocut": autocut,
    "adaptive_k": adaptive_k,
}


def steps(values: Sequence[float]) -> tuple[Gap, ...]:
    """The steps between neighbours, in order."""
    return tuple(Gap(i, right - left) for i, (left, right) in enumerate(pairwise(values), start=1))


def largest(gaps: Sequence[Gap]) -> Gap | None:
    """The largest of `gaps`, the first among equals; None where there is none."""
    if not gaps:
        return None
    size = max(gap.size for gap in gaps)
    return next(gap for gap in gaps if gap.size >= size - EPSILON)


def _cut_at(strategy: str, winner: Gap, reason: str, gaps: tuple[Gap, ...]) -> Cut:
    rank = winner.after_rank
    return Cut(strategy, rank, reason, gaps, cliff_after_rank=rank, gap=winner.size)


def _peaks(values: Sequence[float], pinned: int) -> list[int]:
    """0-based places where the curve, scaled to 0..1, stands above its diagonal and neighbours."""
    # A pin may be farther than what follows it. It counts as near as the nearest of those, so that
    # a pin far away does not flatten or turn the curve.
    pins = list(accumulate(reversed(values[: pinned + 1]), min))[::-1]
    curve = [*pins, *values[pinned + 1 :]]
    span = curve[-1] - curve[0]
    if len(curve) <= 2 or abs(span) <= EPSILON:
        return []
    last = len(curve) - 1
    over = [(value - curve[0]) / span - i / last for i, value in enumerate(curve)]
    neighbours = [(i, i - 1, i + 1) for i in range(1, last)] + [(last, last - 1, last - 2)]
    return [
        i
        for i, a, b in neighbours
        if i >= pinned and over[i] > over[a] + EPSILON and over[i] > over[b] + EPSILON
    ]
