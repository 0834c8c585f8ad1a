"""The cut alone: how many of a list of values are kept, and why. Pure.

Source: docs/design.md#cutoff.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ragfilter.errors import SettingsError
from ragfilter.layers.strategies.base import far_end
from ragfilter.layers.strategies.registry import STRATEGIES, strategy
from ragfilter.model import Cut, CutoffDetail

if TYPE_CHECKING:
    from ragfilter.layers.cutoff import Cutoff


def cut(
    values: Sequence[float],
    settings: Cutoff,
    *,
    pinned: int = 0,
    background: float | None = None,
) -> Cut:
    """How many of `values` are kept, and why.

    `values` (lower is better) are in the current order. The first `pinned` of them are pins and are
    always kept. Only the first max_results are examined. At least min_results are kept, or all if
    there are fewer; max_results wins over min_results. `background` is the value of chunks that
    have nothing to do with the query, by default the mean of the farther half of `values`. Raises
    ValueError for a value that is not a finite number, or a negative `pinned`.
    """
    for place, value in enumerate(values, start=1):
        if not math.isfinite(value):
            raise ValueError(f"value {place} is {value}; only finite numbers can be cut")
    if pinned < 0:
        raise ValueError(f"pinned is {pinned}; it must be at least 0")
    if not values:
        return Cut(settings.strategy, 0, "nothing to cut")
    n = len(values)
    pins = min(pinned, n)
    looked = values[: max(settings.max_results, pins)]
    background = far_end(values) if background is None else background
    wish = strategy(settings.strategy).cut(looked, settings, pins, background)
    return _constrain(wish, settings, n=n, looked=len(looked), pins=pins)


def check_distances(settings: Cutoff) -> None:
    """Raises SettingsError for a strategy that needs more than distances."""
    if strategy(settings.strategy).weigh is not None:
        raise SettingsError(
            f"{settings.strategy} needs the hits' texts, not only their distances.",
            remedy="Use it to filter hits, or choose another strategy.",
        )


def cut_hits(
    values: Sequence[float], settings: Cutoff, *, pinned: int, background: float | None
) -> Cut:
    """`cut` for the hits of a pool. If their `background` is not known, a strategy that needs one
    cuts by gap.
    """
    if background is None and strategy(settings.strategy).reads_pool:
        settings = settings.model_copy(update={"strategy": "gap"})
    return cut(values, settings, pinned=pinned, background=background)


def _constrain(wish: Cut, settings: Cutoff, *, n: int, looked: int, pins: int) -> Cut:
    """Apply min_results, k and the pins to what the strategy wants, and say so in the reason."""
    fewest = min(settings.min_results, looked)
    kept = max(wish.kept, fewest, pins)
    note = raised = ""
    k, least = settings.max_results, settings.min_results
    over = f"takes precedence over the minimum of {least}"
    k_wins = looked == k < min(n, least)
    if kept > wish.kept:
        raised = f"k = {k} {over}" if k_wins else f"at least {least}"
        raised = f"{pins} pinned" if pins > fewest else raised
        note = f"; raised from {wish.kept} to {kept} ({raised})"
    elif kept == looked < n and wish.strategy != "fixed":
        note = f"; k = {k} leaves out the other {n - looked}"
        note += f" and {over}" if k_wins else ""
    if not note:
        return wish
    reason = wish.reason + note
    wished = wish.kept if raised else None
    return replace(wish, kept=kept, reason=reason, raised=raised, wished=wished)


def side_by_side(detail: CutoffDetail, settings: Cutoff, *, pinned: int) -> tuple[Cut, ...]:
    """What every strategy makes of the same values, with the current settings. One that lacks a
    background, or has values of its own, is left out."""
    names = [s.name for s in STRATEGIES if s.weigh is None or s.name == detail.cut.strategy]
    every = (
        cut_hits(
            detail.values,
            settings.model_copy(update={"strategy": name}),
            pinned=pinned,
            background=detail.background,
        )
        for name in names
    )
    return tuple(made for name, made in zip(names, every, strict=True) if made.strategy == name)
