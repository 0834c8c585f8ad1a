"""The cutoff strategies, in the order in which `settings.schema` names them: each is the `SPEC` in
the file of this folder with its name."""

from __future__ import annotations

from importlib import import_module

from ragfilter.layers.strategies.base import StrategySpec
from ragfilter.settings.schema import STRATEGIES as NAMES

STRATEGIES: tuple[StrategySpec, ...] = tuple(
    import_module(f"ragfilter.layers.strategies.{name}").SPEC for name in NAMES
)
_BY_NAME = {spec.name: spec for spec in STRATEGIES}


def strategy(name: str) -> StrategySpec:
    """The strategy called `name`. Raises KeyError."""
    return _BY_NAME[name]
