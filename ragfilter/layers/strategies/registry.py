"""The cutoff strategies, in the order in which they are offered."""

from __future__ import annotations

from ragfilter.layers.strategies import adaptive_k, autocut, fixed, gap
from ragfilter.layers.strategies.base import StrategySpec

STRATEGIES: tuple[StrategySpec, ...] = (
    gap.SPEC,
    fixed.SPEC,
    autocut.SPEC,
    adaptive_k.SPEC,
)

_BY_NAME = {spec.name: spec for spec in STRATEGIES}


def strategy(name: str) -> StrategySpec:
    """The strategy called `name`. Raises KeyError."""
    return _BY_NAME[name]


def described() -> dict[str, str]:
    """What every strategy is, by name."""
    return {spec.name: spec.about for spec in STRATEGIES}
