"""adaptive_k: cut at the largest drop in similarity.

Source: Adaptive-k (Taguchi, Maekawa and Bhutani, EMNLP 2025); docs/design.md#cutoff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, cut_at, largest, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Cut at the largest gap outside the `tail`, then keep `b_extra` more. Similarity drops in proportion."""
    n = len(values)
    tail = max(1, int(n * settings.tail)) if n > 3 and settings.tail else 0
    gaps = [step._replace(skipped=step.after_rank < pinned or step.after_rank >= n - tail) for step in steps(values)]
    winner = largest([step for step in gaps if not step.skipped and step.size > EPSILON])
    if winner is None:
        return Cut("adaptive_k", n, "no drop outside the tail; kept all", tuple(gaps))
    reason = f"largest drop {winner.size:.3f} after hit {winner.after_rank}"
    if settings.b_extra:
        reason += f", and {settings.b_extra} more"
    cut_after = cut_at("adaptive_k", winner.after_rank, reason, gaps)
    return replace(cut_after, kept=min(cut_after.kept + settings.b_extra, n))


SPEC = StrategySpec(
    name="adaptive_k",
    cut=cut,
    reads=("max_results", "min_results", "b_extra", "tail"),
    cliff=lambda settings: "Largest drop",
)
