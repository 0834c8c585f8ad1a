"""The interface of every cutoff strategy: `cut(values, settings, pinned, background)`, pure.

`values` are the values of the first `max_results` hits, the `pinned` ones first; lower is better. A pin can have any
value: `rising` lowers pins for strategies that look at the curve. `background` is the value of chunks unrelated to the
query. A strategy returns how many it would keep. Then `layers.cutoff.cut` applies min_results, max_results and the
pins. A step between two pinned values, or a step down, is never a cliff."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import accumulate
from operator import sub

from ragfilter.layers.layer import EPSILON as EPSILON
from ragfilter.layers.layer import LayerInput
from ragfilter.model import Cut, Gap, Hit
from ragfilter.settings.schema import STRATEGIES, Cutoff


@dataclass(frozen=True, slots=True)
class StrategySpec:
    """One strategy. Choices, sliders, marks on the curve and docs are derived from it.

    `reads` lists the cutoff settings that it uses; `--set` sets them, and tuning varies those for which
    `evaluate/tuning.py` has values. `cliff` names the place of the cut in the headline. `decides` names the setting
    that drops the hits after a cut. `reads_pool`: it compares with the pool's far end, so a full pool is gathered.
    `values_of` computes values that replace distances for cut and order; None while they are unknown."""

    name: str
    cut: Callable[[Sequence[float], Cutoff, int, float], Cut]
    reads: tuple[str, ...] = ("max_results", "min_results")
    cliff: Callable[[Cutoff], str] = lambda settings: "Cut"
    decides: Callable[[Cut], str] = lambda cut: "strategy"
    reads_pool: bool = False
    values_of: Callable[[Sequence[Hit], LayerInput], tuple[float, ...] | None] | None = None


@cache
def strategies() -> dict[str, StrategySpec]:
    """The `SPEC` of every strategy by name, in the order of `settings.schema`."""
    return {name: import_module(f"ragfilter.layers.strategies.{name}").SPEC for name in STRATEGIES}


def strategy(name: str) -> StrategySpec:
    """The strategy called `name`. Raises KeyError."""
    return strategies()[name]


def steps(values: Sequence[float]) -> tuple[Gap, ...]:
    """The steps between neighbours, in order."""
    return tuple(map(Gap, range(1, len(values)), map(sub, values[1:], values)))


def rising(values: Sequence[float], pinned: int) -> list[float]:
    """Lower the value of each pin to the nearest later hit's value, so that no pin flattens or turns the curve."""
    pins = list(accumulate(reversed(values[: pinned + 1]), min))[::-1]
    return [*pins, *values[pinned + 1 :]]


def largest(gaps: Sequence[Gap]) -> Gap | None:
    """The largest of `gaps`, the first of equals; None if there is none."""
    if not gaps:
        return None
    size = max(gap.size for gap in gaps)
    return next(gap for gap in gaps if gap.size >= size - EPSILON)


def cut_at(strategy: str, rank: int, reason: str, gaps: Sequence[Gap], cliffs: Collection[int] = ()) -> Cut:
    """The cut after this rank, which is marked as the cliff unless `cliffs` names others."""
    cliffs = cliffs or (rank,)
    marked = tuple([step._replace(cliff=step.after_rank in cliffs) for step in gaps])
    return Cut(strategy, rank, reason, marked, cliff_after_rank=rank, gap=gaps[rank - 1].size)
