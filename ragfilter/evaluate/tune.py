"""Tune the cutoff, and whether to rerank, on labelled queries; all figures are cross-validated.

Pools are gathered once; every candidate is then replayed over them. A candidate that is best on
four folds is measured on the fifth, and so is everything it is compared with: the best fixed k, the
settings as they were, and each strategy tuned alone. Only the oracle, the best prefix of each
query's unfiltered ranking, knows the labels: it is what a perfect cutoff would reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from statistics import median
from typing import Any, Literal

import numpy as np

from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.crossval import (
    Choice,
    Interval,
    Table,
    assign_folds,
    bootstrap,
    choose,
    held_out,
    pick,
)
from ragfilter.evaluate.metrics import Scores
from ragfilter.evaluate.sweep import Outcome, prefixes, sweep
from ragfilter.layers.strategies.base import far_end
from ragfilter.layers.strategies.registry import STRATEGIES
from ragfilter.model import PUBLIC, Pool, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings

Tables = dict[str, Table]
Measure = Literal["f1", "f2"]
MEASURES: tuple[Measure, ...] = ("f1", "f2")
FEW = 20
"""Labelled queries below which the figures say little."""
RERANKED = 20
"""How many hits are reranked for the candidates that rerank."""

KS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30)
COARSE_KS = (5, 10, 20)
GRID: Mapping[str, tuple[float, ...]] = {
    "jumps": (1, 2, 3),
    "b_extra": (0, 1, 3),
    "relative_offset": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5),
}
# Distances have a scale, so these are shares of the way from the best hit to the background.
SHARES: Mapping[str, tuple[float, ...]] = {
    "gap_threshold": (0.05, 0.1, 0.15, 0.2, 0.3),
    "distance_offset": (0.1, 0.2, 0.3, 0.4, 0.5, 0.7),
}


@dataclass(frozen=True, slots=True)
class Means:
    """Means over queries; `of` is the measure that was tuned, with its interval."""

    precision: float
    recall: float
    f1: float
    f2: float
    kept: float
    tokens: float
    of: Interval


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one is than the other, query by query; `of` as in `Means`."""

    f1: float
    f2: float
    of: Interval


@dataclass(frozen=True, slots=True)
class Tuning:
    """What came out. All means are held out; `k` and `settings` are the best over all queries."""

    measure: Measure
    queries: int
    folds: int
    candidates: int
    k: int
    best_fixed_k: Means
    oracle: Means
    before: Means
    after: Means
    gain: Gain
    strategies: Mapping[str, Means]
    settings: Settings

    @property
    def beats_fixed_k(self) -> bool:
        """Whether the interval of the gain lies above 0."""
        return self.gain.of.low > 0


def gathering(settings: Settings, *, rerank: bool) -> Settings:
    """The settings to gather with, so that the pools hold all that the candidates need."""
    ready = _reranking(settings) if rerank else settings
    # Nobody waits for one answer here, and a score that comes late is no failure.
    return ready.with_values({"quality.reranker_timeout_ms": 600_000})


def tune(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    user: User = PUBLIC,
    *,
    measure: Measure = "f1",
    folds: int = 5,
    rerank: bool = True,
    progress: Progress | None = None,
) -> Tuning:
    """The settings that are best by `measure`, and what tuning so is worth on queries held out.

    `pools` are gathered with `gathering(settings)`; every query has labels. Of `settings` only the
    cutoff and the quality layer change. Raises ValueError for fewer than two queries or folds.
    """
    named = candidates(settings, pools.values(), rerank=rerank)
    flat = [each for group in named.values() for each in group]
    made = _tables(sweep(pools, qrels, [settings, *flat], user, progress=progress))
    ranked = _tables(prefixes(pools, qrels, settings, user))
    assigned = assign_folds(len(pools), folds)

    def tuned(tables: Tables) -> Tables:
        return _pick(tables, held_out(tables[measure], assigned))

    tried = {name: table[:, 1:] for name, table in made.items()}
    fixed, after = tuned(ranked), tuned(tried)
    gain = after[measure] - fixed[measure]
    ends = list(accumulate(map(len, named.values())))
    return Tuning(
        measure=measure,
        queries=len(pools),
        folds=len(np.unique(assigned)),
        candidates=len(flat),
        k=1 + choose(ranked[measure]),
        best_fixed_k=_means(fixed, measure),
        oracle=_means(_pick(ranked, np.argmax(ranked[measure], axis=1)), measure),
        before=_means({name: table[:, 0] for name, table in made.items()}, measure),
        after=_means(after, measure),
        gain=Gain(
            f1=float((after["f1"] - fixed["f1"]).mean()),
            f2=float((after["f2"] - fixed["f2"]).mean()),
            of=bootstrap(gain),
        ),
        strategies={
            name: _means(
                tuned({n: table[:, end - len(group) : end] for n, table in tried.items()}), measure
            )
            for end, (name, group) in zip(ends, named.items(), strict=True)
        },
        settings=flat[choose(tried[measure])],
    )


def candidates(
    settings: Settings, pools: Iterable[Pool], *, rerank: bool
) -> dict[str, tuple[Settings, ...]]:
    """What is tried, by strategy: as the quality layer is set, without it, and always reranked."""
    bases = [settings.with_values({"cutoff.enabled": True})]
    if settings.quality.enabled:
        bases.append(bases[0].with_values({"quality.enabled": False}))
    spread = _spread(pools)
    tried: dict[str, tuple[Settings, ...]] = {
        spec.name: tuple(
            base.with_values(values)
            for base in bases
            for values in _grid(spec.name, spec.reads, spread)
        )
        for spec in STRATEGIES
    }
    if rerank:
        # 1 − rerank score runs from 0 to 1, whatever the space.
        reranked = _reranking(bases[0])
        for spec in STRATEGIES:
            grid = _grid(spec.name, spec.reads, 1.0)
            tried[spec.name] += tuple(reranked.with_values(values) for values in grid)
    return tried


def _reranking(settings: Settings) -> Settings:
    """The same, with everything reranked that comes into the quality layer, and nothing dropped."""
    quality = settings.quality
    depth = max(RERANKED, quality.max_top_k)
    return settings.with_values(
        {
            "quality.enabled": True,
            "quality.mode": "always",
            "quality.reranker": "late_interaction"
            if quality.reranker == "none"
            else quality.reranker,
            "quality.max_top_k": depth,
            "quality.reranker_top_k": depth,
            "quality.reranker_threshold": 0.0,
        }
    )


def _spread(pools: Iterable[Pool]) -> float:
    """How far the background usually lies from the best hit."""
    distances = ([hit.distance for hit in pool.hits if hit.found_by == "query"] for pool in pools)
    return median([far_end(found) - min(found) for found in distances if found] or [1.0])


def _grid(name: str, reads: Sequence[str], spread: float) -> list[dict[str, Any]]:
    """Every combination of the settings that a strategy reads."""
    axes: dict[str, tuple[Any, ...]] = {
        setting: GRID.get(setting) or tuple(_short(spread * s) for s in SHARES[setting])
        for setting in reads
        if setting in GRID or setting in SHARES
    }
    axes["max_results"] = COARSE_KS if axes else KS
    return [
        {"cutoff.strategy": name, "cutoff.min_results": 1}
        | {f"cutoff.{setting}": value for setting, value in zip(axes, values, strict=True)}
        for values in product(*axes.values())
    ]


def _short(value: float) -> float:
    """Two significant digits, within what the settings allow: nothing hangs on the third."""
    return min(float(f"{value:.2g}"), 4.0)


def _tables(made: Sequence[Sequence[Outcome]]) -> Tables:
    """Every figure, with a row a query and a column a candidate."""
    return {
        name: np.array([[read(one) for one in row] for row in made], dtype=np.float64)
        for name, read in READ.items()
    }


def _f2(scores: Scores) -> float:
    """The weighted harmonic mean in which recall counts twice as much as precision."""
    weighted = 4 * scores.precision + scores.recall
    return 5 * scores.precision * scores.recall / weighted if weighted else 0.0


def _pick(tables: Tables, chosen: Choice) -> Tables:
    return {name: pick(table, chosen) for name, table in tables.items()}


def _means(rows: Tables, measure: Measure) -> Means:
    means = {name: float(values.mean()) for name, values in rows.items()}
    return Means(**means, of=bootstrap(rows[measure]))


READ: Mapping[str, Callable[[Outcome], float]] = {
    "precision": lambda one: one.scores.precision,
    "recall": lambda one: one.scores.recall,
    "f1": lambda one: one.scores.f1,
    "f2": lambda one: _f2(one.scores),
    "kept": lambda one: one.kept,
    "tokens": lambda one: one.tokens,
}
