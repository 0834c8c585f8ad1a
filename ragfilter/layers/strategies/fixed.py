"""fixed: keep the first k. Source: Adaptive Filtering Algorithm and Adaptive Result Filtering."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.layers.strategies.strategy import StrategySpec, steps
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Keep the first k."""
    return Cut("fixed", len(values), f"first {settings.max_results}", steps(values))


SPEC = StrategySpec(name="fixed", cut=cut, reads=("max_results",))
