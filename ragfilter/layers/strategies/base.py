"""The one shape every cutoff strategy has: `cut(values, settings, pinned) -> Cut`, pure.

Values are those that are looked at: lower is better, pins first. A strategy returns its own wish;
`layers.cutoff.cut` then holds it to min_results, max_results and the pins. A step between two pins,
or a step down, is never a cliff.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ragfilter.model import Cut, Gap

if TYPE_CHECKING:
    from ragfilter.layers.cutoff import Cutoff

EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class StrategySpec:
    """One strategy. Choices, sliders, marks of the curve, flags and docs are derived from it.

    `about` is a sentence for those who choose. `reads` are the settings of the cutoff that act with
    it. `cliff` calls the place of the cut, for the headline.
    """

    name: str
    cut: Callable[[Sequence[float], Cutoff, int], Cut]
    about: str
    title: str = ""
    reads: tuple[str, ...] = ("max_results", "min_results")
    cliff: Callable[[Cutoff], str] = lambda settings: "Cut"


def steps(values: Sequence[float]) -> tuple[Gap, ...]:
    """The steps between neighbours, in order."""
    return tuple(Gap(i, right - left) for i, (left, right) in enumerate(pairwise(values), start=1))


def largest(gaps: Sequence[Gap]) -> Gap | None:
    """The largest of `gaps`, the first among equals; None where there is none."""
    if not gaps:
        return None
    size = max(gap.size for gap in gaps)
    return next(gap for gap in gaps if gap.size >= size - EPSILON)


def cut_at(strategy: str, winner: Gap, reason: str, gaps: tuple[Gap, ...]) -> Cut:
    """The cut at one of `gaps`."""
    rank = winner.after_rank
    return Cut(strategy, rank, reason, gaps, cliff_after_rank=rank, gap=winner.size)
