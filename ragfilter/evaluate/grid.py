"""Gap threshold against distance offset, for all queries at once. Pure; numpy.

The layers before the cutoff are replayed once per query. The context layer decides about a chunk by
the chunks before it. So what it keeps of a shorter list is a prefix of what it keeps of the whole
list. Every cut is then one entry in a table, and a map of thousands of settings takes milliseconds.
It keeps exactly the chunks that `replay` keeps. The judge sees the whole list at once, so it must
be off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragfilter.answer.context import cost, fill
from ragfilter.engine.replay import replay
from ragfilter.evaluate import metrics
from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.metrics import FIGURES, relevant_of
from ragfilter.evaluate.sweep import ALL
from ragfilter.layers.cutoff import cut_of
from ragfilter.layers.strategies.base import EPSILON
from ragfilter.model import Pool, User
from ragfilter.settings.schema import Cutoff, Settings

Counts = NDArray[np.intp]
Floats = NDArray[np.float64]
Points = Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class Ranking:
    """The cutoff's input for one query: the values in order, how many of them are pinned, and each
    figure by the number of hits that the cutoff lets through (from 0)."""

    id: str
    values: Floats
    pinned: int
    by_cut: Mapping[str, Floats]


def rankings(
    pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User | None = None
) -> tuple[Ranking, ...]:
    """The cutoff's input with these settings, whatever the cutoff's own settings are."""
    base = settings.model_copy(update={"cutoff": ALL})
    return tuple(_ranking(i, pool, qrels[i], base, user) for i, pool in pools.items())


def gap_cuts(
    ranked: Sequence[Ranking], cutoff: Cutoff, thresholds: Points, offsets: Points
) -> Counts:
    """How many hits the strategy `gap` lets through, by query, threshold and offset."""
    limits, best = np.asarray(offsets, dtype=np.float64), np.asarray(thresholds, dtype=np.float64)
    made = np.zeros((len(ranked), len(best), len(limits)), dtype=np.intp)
    for place, each in enumerate(ranked):
        n, pins = len(each.values), min(each.pinned, len(each.values))
        looked = each.values[: max(cutoff.max_results, pins)]
        if not len(looked):
            continue
        after, size = _cliff(looked, pins, first=1 if cutoff.skip_first else 0)
        free = looked[pins:]
        line = looked.min() + limits + EPSILON
        # The first value beyond a line is beyond all values before it. If none is, all stay.
        first = np.searchsorted(np.maximum.accumulate(free), line, side="right")
        wished = np.where(
            (size >= np.maximum(best - EPSILON, 0.0))[:, None], after, (pins + first)[None, :]
        )
        fewest = max(min(cutoff.min_results, len(looked)), pins)
        made[place] = np.minimum(np.maximum(wished, fewest), n)
    return made


def figures(ranked: Sequence[Ranking], cuts: Counts) -> dict[str, Floats]:
    """The mean of every figure for each setting of `cuts` (first axis: queries)."""
    return {
        name: np.mean([each.by_cut[name][cuts[place]] for place, each in enumerate(ranked)], axis=0)
        for name in FIGURES
    }


def pareto(recall: Floats, tokens: Floats) -> list[int]:
    """The flat indexes of the settings on the Pareto front of recall against tokens."""
    order = np.lexsort((-recall.ravel(), tokens.ravel()))
    front: list[int] = []
    reached = -1.0
    for place in order:
        if recall.ravel()[place] > reached + EPSILON:
            front.append(int(place))
            reached = float(recall.ravel()[place])
    return front


def _cliff(values: Floats, pins: int, *, first: int) -> tuple[int, float]:
    """The hit after which the largest gap that may be a cliff lies, and its size; −1 if there is
    none. The `first` gaps (0 or 1) are not considered."""
    gaps = np.diff(values)
    first = max(first, pins - 1)
    if len(gaps) <= first:
        return len(values), -1.0
    eligible = gaps[first:]
    size = float(eligible.max())
    return first + 1 + int(np.argmax(eligible >= size - EPSILON)), size


def _ranking(
    query_id: str, pool: Pool, labels: Mapping[str, int], base: Settings, user: User | None
) -> Ranking:
    result = replay(pool, base, user)
    trace, detail = result.trace("cutoff"), cut_of(result)
    ids, values = (detail.ids, detail.values) if detail else ((), ())
    stays = {hit.id: cost(hit.chunk) for hit in result.kept}
    relevant = relevant_of(labels)
    counts = metrics.Counts(
        np.cumsum([0, *(i in stays for i in ids)]),
        np.cumsum([0, *(i in stays and i in relevant for i in ids)]),
        np.cumsum([0, *(i in stays and i not in labels for i in ids)]),
        np.array([0, *fill([stays.get(i, 0) for i in ids], base.context.max_context_tokens)]),
    )
    return Ranking(
        query_id,
        np.array(values, dtype=np.float64),
        trace.count("pinned"),
        metrics.figures(counts, len(relevant)),
    )
