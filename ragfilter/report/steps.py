"""What each value of a threshold would keep at the cutoff, as a step function. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from ragfilter.layers.cutoff import cut_hits
from ragfilter.model import CutoffDetail, PoolResult
from ragfilter.settings.schema import Cutoff

Steps = tuple[tuple[float, int], ...]
"""The lowest value of each step, with how many hits it keeps."""


def keeps(result: PoolResult, name: str, values: tuple[float, ...]) -> Steps:
    """How many hits the cutoff would keep with each of the ascending `values` of its setting
    `name`, as declared by the strategy itself."""
    trace = result.trace("cutoff")
    assert isinstance(trace.detail, CutoffDetail)
    detail = trace.detail
    # The current value is removed, so that a threshold that moves finds its own cached steps.
    changed = {"strategy": detail.cut.strategy, name: values[0]}
    settings = result.settings.cutoff.model_copy(update=changed)
    pinned = trace.count("pinned")
    return _steps(detail.values, settings, pinned, detail.background, name, values)


@lru_cache(maxsize=256)
def _steps(
    hits: tuple[float, ...], settings: Cutoff, pinned: int, background: float | None,
    name: str, values: tuple[float, ...],
) -> Steps:  # fmt: skip
    @cache
    def kept(i: int) -> int:
        tried = settings.model_copy(update={name: values[i]})
        return cut_hits(hits, tried, pinned=pinned, background=background).kept

    last = len(values) - 1
    # A larger k may bring a new cliff and keep fewer hits. A threshold changes in one direction
    # only.
    places = range(1, last + 1) if name == "max_results" else _changes(kept, 0, last)
    changes = [i for i in places if kept(i) != kept(i - 1)]
    return tuple((values[i], kept(i)) for i in [0, *changes])


def _changes(kept: Callable[[int], int], low: int, high: int) -> list[int]:
    """Where `kept` changes after `low`. Between two places that keep the same number it does not
    change."""
    if kept(low) == kept(high):
        return []
    if high - low == 1:
        return [high]
    middle = (low + high) // 2
    return _changes(kept, low, middle) + _changes(kept, middle, high)
