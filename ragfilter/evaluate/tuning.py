"""Tune the cutoff, and whether to rerank, on labelled queries. All figures are cross-validated.

The candidates are all strategies, with different values for the settings that they cut by. Pools are gathered once, and
every candidate is replayed over them. The candidate that is best on four folds is measured on the fifth, and so is
everything it is compared with: the best fixed k, the previous settings, and each strategy tuned alone. Models are
trained again on the four folds. Only the oracle, the best prefix of each query's unfiltered ranking, knows the labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from operator import neg
from statistics import median
from typing import Any

import numpy as np

from ragfilter.engine.gather import Backends
from ragfilter.engine.replay import replay
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate.crossval import (
    CHOSEN_BY,
    FEW_QUERIES,
    MIN_QUERIES,
    Choice,
    Interval,
    Tables,
    Target,
    folds_of,
    picked,
)
from ragfilter.evaluate.frame import means
from ragfilter.evaluate.labelled_queries import Labels, Qrels
from ragfilter.evaluate.learning import DEPTH, INNER, LearnedSettings, Lessons, Provenance, learn_by_fold
from ragfilter.evaluate.metrics import SET_FIGURES, best_fixed_k, best_prefix, prefixes_of_pools
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.recalibrate import RECORD, as_they_are, quantiles
from ragfilter.evaluate.sweep import check_reranked, sweep
from ragfilter.layers.layer import estimate_background
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.strategies.strategy import strategies, strategy
from ragfilter.layers.tuned_on import seen_labels
from ragfilter.model import Pool, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings, TunedOn
from ragfilter.text.numbers import counted

RERANKED = 20
"""How many hits are reranked if a candidate reranks."""
FORGOTTEN = {"cutoff.calibration": "", "cutoff.tuned_on": ""}
"""Values that erase the record of what was chosen by or learned from labels."""
KS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 50)
COARSE_KS = (5, 10, 20)
GRID: Mapping[str, tuple[float, ...]] = {
    "jumps": (1, 2, 3),
    "b_extra": (0, 1, 3),
    "relative_offset": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5),
}
# Distances have different scales, so these are fractions of the way from best hit to background.
FRACTIONS: Mapping[str, tuple[float, ...]] = {
    "gap_threshold": (0.05, 0.1, 0.15, 0.2, 0.3),
    "distance_offset": (0.1, 0.2, 0.3, 0.4, 0.5, 0.7),
}


def wide_settings(settings: Settings, *, rerank: bool) -> Settings:
    """The settings to gather with, so that the pools have all that the candidates need. The current
    cutoff may not apply yet, like `calibrated` before anything was learned."""
    ready = _reranking(settings, DEPTH) if rerank else settings
    deep = max(DEPTH, settings.cutoff.max_results)
    return by_gap(ready).with_values({"cutoff.max_results": deep})


def by_gap(settings: Settings) -> Settings:
    """The settings with a cutoff that applies to any collection."""
    return settings.with_values({"cutoff.strategy": "gap", **FORGOTTEN})


def candidates(settings: Settings, pools: Iterable[Pool], *, rerank: bool) -> dict[str, tuple[Settings, ...]]:
    """The candidates by strategy: with the quality layer as set, without it, and with reranking
    always on. Learned strategies are not among them."""
    spread = _spread(pools)
    return {
        spec.name: tuple(
            base.with_values(values)
            for base in bases(settings, rerank=rerank, depth=RERANKED)
            # 1 − rerank score is between 0 and 1, whatever the space.
            for values in _grid(spec.name, spec.reads, 1.0 if always_reranks(base.quality) else spread)
        )
        for spec in strategies().values()
        if spec.values_of is None
    }


def bases(settings: Settings, *, rerank: bool, depth: int) -> list[Settings]:
    """The alternatives for the layers before the cutoff."""
    first = settings.with_values({"cutoff.enabled": True, **FORGOTTEN})
    bases = [first]
    if settings.quality.enabled:
        bases.append(first.with_values({"quality.enabled": False}))
    if rerank:
        bases.append(_reranking(first, depth))
    return bases


def _reranking(settings: Settings, depth: int) -> Settings:
    """The same settings, but the quality layer reranks everything that enters it and drops nothing."""
    reranker, depth = settings.quality.reranker, max(depth, settings.quality.max_top_k)
    values = {
        "quality.enabled": True,
        "quality.mode": "always",
        "quality.reranker": "late_interaction" if reranker == "none" else reranker,
        "quality.max_top_k": depth,
        "quality.reranker_top_k": depth,
        "quality.reranker_threshold": 0.0,
        # Distances tuned without a reranker are refused with one.
        "cutoff.tuned_on": "",
    }
    return settings.with_values(values)


def _spread(pools: Iterable[Pool]) -> float:
    """The typical difference in distance between the background and the best hit."""
    distances = (pool.distances for pool in pools)
    return median([estimate_background(values) - min(values) for values in distances if values] or [1.0])


def _grid(name: str, reads: Sequence[str], spread: float) -> list[dict[str, Any]]:
    """Every combination of the settings that a strategy reads."""
    axes: dict[str, tuple[Any, ...]] = {
        setting: GRID.get(setting) or tuple(_short(spread * s) for s in FRACTIONS[setting])
        for setting in reads
        if setting in GRID or setting in FRACTIONS
    }
    axes["max_results"] = COARSE_KS if axes else KS
    return [
        {"cutoff.strategy": name, "cutoff.min_results": 1}
        | {f"cutoff.{setting}": value for setting, value in zip(axes, values, strict=True)}
        for values in product(*axes.values())
    ]


def _short(value: float) -> float:
    """Two significant digits, within the setting's range; a third digit makes no difference."""
    return min(float(f"{value:.2g}"), 4.0)


MARGIN = 0.02
"""When tuning again, a loss of at most this counts as none."""
Figures = Mapping[str, Interval]
"""The mean over queries of each figure, or of its difference, with its interval."""
BEFORE = "before"
"""The previous settings, as another strategy to choose from."""


@dataclass(frozen=True, slots=True)
class TuningMethod:
    """One way to tune: its means on held-out queries, the differences to the best fixed k and to the previous
    settings, and the settings that it chooses on all queries."""

    means: Figures
    gain: Figures
    gain_over_before: Figures
    settings: Settings


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of tuning. All figures are held out; `k` is the best over all queries.

    `tuned` chooses among all candidates, and keeps the previous settings if it does no better on held-out queries;
    `strategies` has each strategy tuned alone. `over_strategies` compares `calibrated` with every other strategy.
    `dial` maps the share of relevant hits that the recall dial aims to keep to the share it kept on held-out queries.
    `budget` is `calibrated` with the target budget, None if nothing was learned; `why_not` says why. `seen`: the
    previous settings were chosen on labels, so their figures may be better here than elsewhere. If the previous
    settings did not apply, `stands_in` says why, and `before` has the strategy gap with all their other values."""

    target: Target
    queries: int
    folds: int
    candidates: int
    k: int
    best_fixed_k: Figures
    oracle: Figures
    before: Figures
    tuned: TuningMethod
    strategies: Mapping[str, TuningMethod]
    over_strategies: Mapping[str, Figures]
    dial: Mapping[str, float]
    budget: Figures | None = None
    why_not: str = ""
    seen: bool = False
    stands_in: str = ""

    def __repr__(self) -> str:
        return (
            f"<Tuning: {counted(self.queries, 'query')}, "
            f"{self.tuned.settings.cutoff.strategy} with F1 {self.tuned.means['f1'].mean:.3f}, "
            f"best fixed k {self.best_fixed_k['f1'].mean:.3f}>"
        )

    @property
    def beats_fixed_k(self) -> bool:
        """Whether the gain is significant, and the required recall, if any, is reached."""
        return self.gain(self.tuned.gain).shows_gain and self.tuned.means["recall"].mean >= self.target.recall

    def gain(self, differences: Figures) -> Interval:
        """The gain in the tuned figure; for tokens, the tokens saved."""
        gained = differences[self.target.figure]
        return gained.mapped(neg) if self.target.figure == "tokens" else gained

    @property
    def judged(self) -> str:
        """The figure that decides whether settings replace others: the tuned one, or recall when tuning for tokens."""
        return "recall" if self.target.figure == "tokens" else self.target.figure

    def loses_at_most(self, margin: float) -> bool:
        """Whether the tuned settings lose at most `margin` (0 to 1) of the judged figure compared with the previous
        settings: the whole interval of the difference, on the same questions, must be above −`margin`."""
        difference = self.tuned.gain_over_before[self.judged]
        alike = difference.mean if self.queries >= MIN_QUERIES else -np.inf
        return (difference.ends[0] if difference.ends else alike) >= -margin

    def only(self, strategy: str) -> Tuning:
        """The same result with this strategy chosen, even if not best. Raises KeyError if it was not tuned."""
        return replace(self, tuned=self.strategies[strategy])


def tune_questions(
    labels: Labels,
    settings: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    target: Target = Target(),
    folds: int = 5,
    rerank: bool = True,
    replaces: Settings | None = None,
    gathered: Progress | None = None,
    replayed: Progress | None = None,
) -> tuple[Tuning, dict[str, Pool]]:
    """Gather pools for the labelled questions of a collection, and tune on them. Returns the pools as well. Raises what
    `tune` and `completed_pools` raise."""
    check_tunable(settings, len(labels.qrels))
    wide = wide_settings(settings, rerank=rerank)
    pools = completed_pools(labels.labelled, wide, backends, user, progress=gathered)
    tuning = tune(
        pools,
        labels.qrels,
        settings,
        user,
        target=target,
        folds=folds,
        rerank=rerank,
        replaces=replaces,
        provenance=Provenance.of(labels),
        progress=replayed,
    )
    return tuning, pools


def check_tunable(settings: Settings, questions: int) -> None:
    """Raise InputError if nothing can be tuned with these settings on this many labelled questions."""
    if settings.judge.enabled:
        raise InputError(
            "The judge is on, and tuning cannot replay LLM answers.",
            remedy="Switch the judge off: judge.enabled = false.",
        )
    if questions < 2:
        raise InputError(
            "Cross-validation needs at least two labelled queries.",
            remedy=f"Label more queries, at least {FEW_QUERIES} for meaningful figures.",
        )


def tune(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    user: User | None = None,
    *,
    target: Target = Target(),
    folds: int = 5,
    rerank: bool = True,
    replaces: Settings | None = None,
    provenance: Provenance = Provenance(),
    progress: Progress | None = None,
) -> Tuning:
    """Find the best settings for `target`, and measure them on held-out queries. Tuning starts from
    `settings`. The result is compared with `replaces` (default: `settings`), whose values count as
    they are, even if they no longer apply.

    Gather `pools` with `wide_settings`; every query must have labels. Only the cutoff and the quality layer of
    `settings` change. Raises InputError for fewer than two queries, if the judge is on, and if a reranker failed: then
    only some queries would have its scores. Raises ValueError for fewer than two folds."""
    check_tunable(settings, len(pools))
    check_reranked(pools.values())
    texts = [pool.query for pool in pools.values()]
    assigned = folds_of(texts, folds)
    folds = len(np.unique(assigned))
    some = next(iter(pools.values()))
    seen = settings.cutoff.calibration is not None or seen_labels(settings) is not None
    settings, stands_in = _applicable(settings, some, user)
    tried = candidates(settings, pools.values(), rerank=rerank)
    swept = sweep(pools, qrels, [settings, *chain.from_iterable(tried.values())], user, progress=progress)
    before = {name: table[:, 0] for name, table in swept.items()}
    # First, so that candidates that are only as good do not replace the settings.
    ways = {} if seen else {BEFORE: _Way(before, settings, {name: table[:, :1] for name, table in swept.items()})}
    ways |= _each_alone(tried, swept, pools.values(), assigned, target, provenance)
    lessons: Lessons | None = None
    why_not = ""
    try:
        ready = bases(settings, rerank=rerank, depth=DEPTH)
        lessons = learn_by_fold(pools, qrels, ready, user, assigned, provenance, target)
        ways["calibrated"] = _Way(lessons.figures, _with_dial(lessons, folds))
    except ValueError as error:
        why_not = str(error)
    after = _held_out(ways, lessons, texts, assigned, target)
    chosen = ways[_best(ways, lessons.whole if lessons else None, texts, target, np.arange(len(texts)))].settings
    if not seen and not target.best([before, after]):
        # Tuning does no better on held-out queries than leaving the settings as they are.
        after, chosen = before, settings

    if replaces is not None:
        replaces, stands_in = _applicable(as_they_are(replaces, some), some, user)
        before = {name: table[:, 0] for name, table in sweep(pools, qrels, [replaces], user).items()}
    orders = prefixes_of_pools(pools, qrels, settings, user)
    k, fixed = best_fixed_k(orders, assigned, target)

    def tuned(figures: Tables, settings: Settings) -> TuningMethod:
        return TuningMethod(means(figures), _differences(figures, fixed), _differences(figures, before), settings)

    strategies = {name: way for name, way in ways.items() if name != BEFORE}
    return Tuning(
        target=target,
        queries=len(pools),
        folds=folds,
        candidates=sum(map(len, tried.values())) + (lessons is not None),
        k=k,
        best_fixed_k=means(fixed),
        oracle=means(picked(orders, best_prefix(orders, target))),
        before=means(before),
        tuned=tuned(after, chosen),
        strategies={name: tuned(way.figures, way.settings) for name, way in strategies.items()},
        over_strategies={
            name: _differences(lessons.figures, way.figures)
            for name, way in strategies.items()
            if lessons and name != "calibrated"
        },
        dial=lessons.dial if lessons else {},
        budget=means(lessons.budget) if lessons else None,
        why_not=why_not,
        seen=seen,
        stands_in=stands_in,
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """The figures of each query, held out, with one strategy or the previous settings, what is chosen on all queries,
    and the figures of all candidates; a learned strategy has none."""

    figures: Tables
    settings: Settings
    tables: Tables = field(default_factory=dict)


def _applicable(settings: Settings, pool: Pool, user: User | None) -> tuple[Settings, str]:
    """The settings or, if they do not apply to the pool, their stand-ins and the reason."""
    try:
        replay(pool, settings, user)
    except SettingsError as error:
        return by_gap(settings), error.message
    return settings, ""


def recorded(
    settings: Settings,
    pools: Collection[Pool],
    provenance: Provenance,
    paths: Iterable[str] | None = None,
    *,
    values_only: bool = False,
) -> Settings:
    """The settings with a record that the values at `paths` (default: the cutoff's) were tuned on
    these pools, one for each query. `values_only`: labels did not choose the strategy."""
    quality, cutoff = settings.quality, settings.cutoff
    names = [n for n in strategy(cutoff.strategy).reads if n in GRID or n in FRACTIONS]
    cutoff_paths = [f"cutoff.{name}" for name in (*names, "max_results")] if cutoff.enabled else []
    pool = next(iter(pools))
    record = TunedOn(
        collection=pool.collection,
        embedder=pool.embedder,
        space=pool.space,
        reranker=reranker_key(quality) if always_reranks(quality) else "",
        labels=provenance.labels,
        queries=len(pools),
        date=provenance.date,
        quantiles=quantiles(settings, pools),
        strategy=cutoff.strategy if cutoff.enabled else "",
        score=cutoff.score,
        values={path: settings.get(path) for path in (cutoff_paths if paths is None else paths)},
        values_only=values_only,
    )
    return settings.with_values({RECORD: record})


def _with_dial(lessons: Lessons, folds: int) -> Settings:
    """Calibrated settings that record what the recall dial kept on held-out queries. Shares for which a fold had too
    few labels are left out."""
    settings, calibration = lessons.whole.settings, lessons.whole.calibration
    shares = {share: round(kept, 3) for share, kept in lessons.dial.items()}
    cutoff = settings.cutoff
    usable = {*shares, *([f"{cutoff.recall:g}"] if cutoff.target == "recall" else [])}
    keeps = {share: least for share, least in calibration.keeps.items() if share in usable}
    measured = calibration.model_copy(update={"held_out": shares, "keeps": keeps, "folds": folds})
    return settings.with_values({"cutoff.calibration": measured})


def _each_alone(
    tried: Mapping[str, Sequence[Settings]],
    swept: Tables,
    pools: Collection[Pool],
    folds: Choice,
    target: Target,
    provenance: Provenance,
) -> dict[str, _Way]:
    """Tune each strategy alone. `swept` has the previous settings first, then the candidates of each strategy."""
    ways, first = {}, 1
    for name, group in tried.items():
        tables = {figure: table[:, first : first + len(group)] for figure, table in swept.items()}
        best = recorded(group[target.choose(tables)], pools, provenance)
        ways[name] = _Way(picked(tables, target.held_out(tables, folds)), best, tables)
        first += len(group)
    return ways


def _held_out(
    ways: Mapping[str, _Way], lessons: Lessons | None, texts: Sequence[str], folds: Choice, target: Target
) -> Tables:
    """All figures of each query if the strategy, too, is chosen without the query's fold."""
    held_out = {figure: np.zeros(len(folds)) for figure in SET_FIGURES}
    for fold in np.unique(folds):
        out = folds == fold
        learned = lessons.by_fold[int(fold)] if lessons else None
        best = ways[_best(ways, learned, texts, target, np.flatnonzero(~out))]
        for figure, values in held_out.items():
            values[out] = best.figures[figure][out]
    return held_out


def _best(
    ways: Mapping[str, _Way], learned: LearnedSettings | None, texts: Sequence[str], target: Target, places: Choice
) -> str:
    """The best strategy for the target on the queries at these `places`, which belong to `learned`. Strategies are
    judged by held-out figures, because the best of a hundred candidates looks better than it is, and a learned strategy
    is not chosen from a hundred."""
    alone = len(places) == 1
    folds = np.zeros(1, np.intp) if alone else folds_of([texts[place] for place in places.tolist()], INNER)
    honest: dict[str, Tables] = {}
    for name, way in ways.items():
        tables = {figure: table[places] for figure, table in way.tables.items()}
        if learned is not None and not tables:
            honest[name] = learned.figures
        elif tables:
            honest[name] = picked(tables, folds if alone else target.held_out(tables, folds))
    return list(honest)[target.best(honest.values())]


def _differences(one: Tables, other: Tables) -> Figures:
    return means({name: one[name] - other[name] for name in CHOSEN_BY}, limited=False)
