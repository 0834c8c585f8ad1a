"""The settings that a map covers, and its results. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from ragfilter.answer.context_packing import block_tokens, fill
from ragfilter.engine.replay import replay
from ragfilter.evaluate import metrics
from ragfilter.evaluate.labelled_queries import Qrels, relevant_of
from ragfilter.evaluate.metrics import SET_FIGURES
from ragfilter.evaluate.sweep import ALL, check_reranked, sweep
from ragfilter.evaluate.tuning import FRACTIONS, GRID, wide_settings
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.layers.registry import LAYERS, layer
from ragfilter.layers.strategies.strategy import EPSILON
from ragfilter.model import Pool, User
from ragfilter.protocols import Progress
from ragfilter.settings.field import FieldInfo
from ragfilter.settings.schema import Cutoff, Settings, field_info

THRESHOLD, OFFSET = "cutoff.gap_threshold", "cutoff.distance_offset"
FINE, LINE, COARSE = 50, 31, 9
"""Number of values on an axis: if computed at once, replayed alone, or replayed with another."""
MAGNITUDES = 100
"""An axis is logarithmic if its highest value is above this multiple of its lowest value."""
NONE = ""
Figures = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Map:
    """The figures at every value of one or two axes: x by row, y by column (one column without y). NaN if the settings
    refuse the values, such as a minimum above its maximum, or if rerank scores are missing."""

    x: FieldInfo
    y: FieldInfo | None
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    figures: Figures

    def values(self, place: int) -> dict[str, float | int]:
        """The settings at a flat index."""
        row, column = divmod(place, len(self.ys))
        values = {self.x.path: self.x.value_type(self.xs[row])}
        return values if self.y is None else values | {self.y.path: self.y.value_type(self.ys[column])}

    @property
    def places(self) -> list[int]:
        """The flat indexes whose values the settings accept."""
        return [int(place) for place in np.flatnonzero(~np.isnan(self.figures["f1"]))]

    @property
    def left_out(self) -> str:
        """How many places have no figures, and why, in words; empty if all have some."""
        n = len(self.xs) * len(self.ys) - len(self.places)
        why = "their values contradict each other, or rerank scores are missing"
        return f"{n} left out, because {why}" if n else ""

    def at(self, place: int) -> dict[str, float]:
        """The mean of every figure at a flat index."""
        return {name: float(values.ravel()[place]) for name, values in self.figures.items()}

    def highest(self, figure: str) -> int:
        """The flat index where a figure is highest, the first one if tied."""
        flat = self.figures[figure].ravel()
        return int(np.argmax(flat >= np.nanmax(flat) - 1e-12))

    def front(self) -> list[int]:
        """The flat indexes of the Pareto front of recall against tokens."""
        return pareto(self.figures["recall"], self.figures["tokens"])

    def nearest(self, settings: Settings) -> int:
        """The flat index nearest to the current settings."""
        row = int(np.argmin(np.abs(np.array(self.xs) - settings.get(self.x.path))))
        if self.y is None:
            return row
        column = int(np.argmin(np.abs(np.array(self.ys) - settings.get(self.y.path))))
        return row * len(self.ys) + column

    def holds(self, settings: Settings) -> bool:
        """Whether the current settings are on the map."""
        values = self.values(self.nearest(settings))
        return all(settings.get(path) == value for path, value in values.items())


def axes(settings: Settings) -> list[str]:
    """The numeric settings that have an effect with the current layers; those that cut off the list
    come first. Never empty, because the context layer has its budget."""
    paths = ["retrieval.k"] if layer("top_k").enabled(settings) else []
    for spec in sorted(LAYERS, key=lambda spec: spec.name != "cutoff"):
        varied = spec.settings_names and spec.name not in ("clearance", "judge")
        if varied and spec.enabled(settings):
            for name in spec.used(settings):
                info = field_info(f"{spec.name}.{name}")
                if info.value_type in (int, float) and info.ceiling and not name.endswith("_ms"):
                    paths.append(info.path)
    return paths


def usual(paths: Sequence[str]) -> str:
    """The default axis: the setting that the strategy cuts by, otherwise the first one."""
    strategy_paths = (f"cutoff.{name}" for name in (*FRACTIONS, *GRID))
    return next((path for path in strategy_paths if path in paths), paths[0])


def fast(settings: Settings, x: str, y: str) -> bool:
    """Whether the map can be computed without replaying every value, if the hits have distances."""
    return (
        settings.cutoff.enabled
        and settings.cutoff.strategy == "gap"
        and not (settings.cutoff.score or settings.cutoff.limits)
        and {x, y} <= {THRESHOLD, OFFSET, NONE}
        and not settings.judge.enabled
    )


def gathering_for(settings: Settings, x: str, y: str) -> Settings:
    """The settings to gather with. If an axis decides which hits are reranked, these gather all scores."""
    quality, names = settings.quality, [layer.name for layer in LAYERS]
    early = names[: names.index("quality") + 1]
    scored = quality.enabled and quality.reranker != "none"
    if scored and any(path.partition(".")[0] in early for path in (x, y)):
        return wide_settings(settings, rerank=True)
    return settings


def make(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    user: User | None,
    x: str,
    y: str,
    *,
    progress: Progress | None = None,
) -> Map:
    """Replay every pool with every pair of values that the settings accept. `pools` are gathered
    with `gathering_for`. Raises InputError if a reranker failed."""
    check_reranked(pools.values())
    lacking: set[int] = set()
    quick = fast(settings, x, y) and not any(pool.space == "rank" for pool in pools.values())
    n = FINE if quick else COARSE if y else LINE
    first, second = field_info(x), field_info(y) if y else None
    xs = points(first, settings, n)
    ys = (0.0,) if second is None else points(second, settings, n)
    if quick:
        cutoff, ranked = settings.cutoff, rankings(pools, qrels, settings, user)
        values: dict[str, Points] = {THRESHOLD: [cutoff.gap_threshold], y: ys, x: xs}
        offsets = values.get(OFFSET, [cutoff.distance_offset])
        means_by_figure = figures(ranked, gap_cuts(ranked, cutoff, values[THRESHOLD], offsets))
        if x == OFFSET:
            means_by_figure = {name: means.T for name, means in means_by_figure.items()}
    else:
        tried = [
            _with(settings, {x: first.value_type(a)} | ({y: second.value_type(b)} if second else {}))
            for a, b in product(xs, ys)
        ]
        accepted = np.array([each is not None for each in tried])
        tables = sweep(pools, qrels, [s for s in tried if s], user, progress=progress, lacking=lacking)
        means_by_figure = {}
        for name, table in tables.items():
            means, whole = table.mean(axis=0), np.full(len(tried), np.nan)
            means[list(lacking)] = np.nan
            whole[accepted] = means
            means_by_figure[name] = whole.reshape(len(xs), len(ys))
    return Map(first, second, xs, ys, means_by_figure)


def by_factors(low: float, high: float) -> bool:
    """Whether an axis between these values is logarithmic."""
    return low > 0 and high / low > MAGNITUDES


def points(info: FieldInfo, settings: Settings, n: int) -> tuple[float, ...]:
    """`n` values from the lowest to the slider's highest, including the current one."""
    low, high = float(info.low or 0), float(max(info.ceiling or 1, settings.get(info.path)))
    # The interesting part of a budget from 50 to 32,000 tokens is in the hundreds.
    spaced = np.geomspace if by_factors(low, high) else np.linspace
    # Keep only values that a slider can have.
    step = float(info.step or 1)
    values = np.round(np.round(spaced(low, high, n) / step) * step, 6)
    values = np.unique(np.maximum(values, low))
    here = float(settings.get(info.path))
    values[int(np.argmin(np.abs(values - here)))] = here
    return tuple(float(value) for value in values)


def _with(settings: Settings, values: dict[str, Any]) -> Settings | None:
    """The settings with these values; None if they are invalid."""
    try:
        return settings.with_values(values)
    except ValidationError:
        return None


Counts = NDArray[np.intp]
Floats = NDArray[np.float64]
Points = Sequence[float] | Floats


@dataclass(frozen=True, slots=True)
class Ranking:
    """The cutoff's input for one query: the values in order, the number of pinned ones, and each
    figure by the number of hits that the cutoff keeps (from 0)."""

    values: Floats
    pinned: int
    by_cut: Mapping[str, Floats]


def rankings(
    pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User | None = None
) -> tuple[Ranking, ...]:
    """The cutoff's input under these settings, whatever the cutoff's own settings are."""
    base = settings.model_copy(update={"cutoff": ALL})
    return tuple(_ranking(pool, qrels[i], base, user) for i, pool in pools.items())


def gap_cuts(ranked: Sequence[Ranking], cutoff: Cutoff, thresholds: Points, offsets: Points) -> Counts:
    """How many hits the strategy `gap` keeps, by query, threshold and offset."""
    limits, best = np.asarray(offsets, dtype=np.float64), np.asarray(thresholds, dtype=np.float64)
    cuts = np.zeros((len(ranked), len(best), len(limits)), dtype=np.intp)
    for place, each in enumerate(ranked):
        n, pins = len(each.values), min(each.pinned, len(each.values))
        values = each.values[: max(cutoff.max_results, pins)]
        if not len(values):
            continue
        after, size = _cliff(values, pins, first=1 if cutoff.skip_first else 0)
        free = values[pins:]
        line = values.min() + limits + EPSILON
        # The first value beyond a line is a new maximum. If none is beyond it, all hits stay.
        first = np.searchsorted(np.maximum.accumulate(free), line, side="right")
        proposed = np.where((size >= np.maximum(best - EPSILON, 0.0))[:, None], after, (pins + first)[None, :])
        fewest = max(min(cutoff.min_results, len(values)), pins)
        cuts[place] = np.minimum(np.maximum(proposed, fewest), n)
    return cuts


def figures(ranked: Sequence[Ranking], cuts: Counts) -> dict[str, Floats]:
    """The mean of every figure at each place of `cuts`, whose first axis is the queries."""
    return {
        name: np.mean([each.by_cut[name][cuts[place]] for place, each in enumerate(ranked)], axis=0)
        for name in SET_FIGURES
    }


def pareto(recall: Floats, tokens: Floats) -> list[int]:
    """The flat indexes of the settings on the Pareto front of recall against tokens."""
    order = np.lexsort((-recall.ravel(), tokens.ravel()))
    reached = np.fmax.accumulate(np.append(-1.0, recall.ravel()[order]))
    front: list[int] = order[np.diff(reached) > EPSILON].tolist()
    return front


def _cliff(values: Floats, pins: int, *, first: int) -> tuple[int, float]:
    """The hit before the largest gap, without the `first` gaps (0 or 1), and the gap's size; −1 if there is none."""
    gaps = np.diff(values)
    first = max(first, pins - 1)
    if len(gaps) <= first:
        return len(values), -1.0
    eligible = gaps[first:]
    size = float(eligible.max())
    return first + 1 + int(np.argmax(eligible >= size - EPSILON)), size


def _ranking(pool: Pool, labels: Mapping[str, int], base: Settings, user: User | None) -> Ranking:
    result = replay(pool, base, user)
    trace, detail = result.trace("cutoff"), cutoff_detail(result)
    ids, values = (detail.ids, detail.values) if detail else ((), ())
    stays = {hit.id: block_tokens(hit.chunk) for hit in result.kept}
    relevant = relevant_of(labels)
    counts = metrics.Counts(
        np.cumsum([0, *(i in stays for i in ids)]),
        np.cumsum([0, *(i in stays and i in relevant for i in ids)]),
        np.cumsum([0, *(i in stays and i not in labels for i in ids)]),
        np.array([0, *fill([stays.get(i, 0) for i in ids], base.context.max_context_tokens)]),
    )
    by_cut = metrics.figures(counts, len(relevant))
    return Ranking(np.array(values, dtype=np.float64), trace.count("pinned"), by_cut)
