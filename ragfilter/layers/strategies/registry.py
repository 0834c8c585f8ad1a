"""The cutoff strategies, in the order in which they are shown."""

from __future__ import annotations

from importlib import import_module

from ragfilter.layers.strategies.base import StrategySpec

ORDER = (
    "gap",
    "fixed",
    "autocut",
    "adaptive_k",
    "moving_avg",
    "spike",
    "car",
    "otsu",
    "relative",
    "calibrated",
)
"""Files of this folder, each with a `SPEC`."""

STRATEGIES: tuple[StrategySpec, ...] = tuple(
    import_module(f"ragfilter.layers.strategies.{name}").SPEC for name in ORDER
)
_BY_NAME = {spec.name: spec for spec in STRATEGIES}


def strategy(name: str) -> StrategySpec:
    """The strategy called `name`. Raises KeyError."""
    return _BY_NAME[name]


def described() -> dict[str, str]:
    """What every strategy is, by name."""
    return {spec.name: spec.about for spec in STRATEGIES}
