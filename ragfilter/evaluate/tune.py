"""Tune the cutoff, and whether to rerank, on labelled queries. All figures are cross-validated.

The candidates are all strategies, with different values for the settings that they cut by. Pools are gathered once, and
every candidate is replayed over them. The candidate that is best on four folds is measured on the fifth, and so is
everything it is compared with: the best fixed k, the previous settings, and each strategy tuned alone. Models are
trained again on the four folds. Only the oracle, the best prefix of each query's unfiltered ranking, knows the labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
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
    interval,
    intervals,
    picked,
)
from ragfilter.evaluate.labelled_queries import Labels, Qrels
from ragfilter.evaluate.learning import DEPTH, INNER, Learned, Lessons, Provenance, learn_by_fold
from ragfilter.evaluate.measure import completed_pools
from ragfilter.evaluate.metrics import SET_FIGURES
from ragfilter.evaluate.prefixes import best_fixed_k, oracle, prefixes_of_pools
from ragfilter.evaluate.recalibrate import RECORD, as_they_are, quantiles
from ragfilter.evaluate.sweep import check_reranked, sweep
from ragfilter.layers.base import far_end
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.strategies.base import strategies, strategy
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
SHARES: Mapping[str, tuple[float, ...]] = {
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
    return median([far_end(values) - min(values) for values in distances if values] or [1.0])


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
    """Two significant digits, within the setting's range; a third digit makes no difference."""
    return min(float(f"{value:.2g}"), 4.0)


MARGIN = 0.02
"""When tuning again, a loss of at most this counts as none."""
BEFORE = "before"
"""The previous settings, as another strategy to choose from."""


@dataclass(frozen=True, slots=True)
class TunedMeans:
    """Means over queries. `of` is the tuned measure, with its interval. `unlabelled` is the number of kept chunks
    without a label, which count as irrelevant; `f1_most` is F1 if all of them were relevant."""

    precision: float
    recall: float
    f1: float
    f2: float
    kept: float
    tokens: float
    unlabelled: float
    f1_most: float
    of: Interval
    each: Mapping[str, Interval] = field(default_factory=dict)
    """The figures that `Target` may use, with their intervals."""


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one result is than another, per query. `of` is the gain in the tuned measure;
    positive is better. `each` has the differences in the figures that `Target` may use."""

    of: Interval
    each: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tuned:
    """One way to tune: its means on held-out queries, its gains over the best fixed k and over the
    previous settings, and the settings that it chooses on all queries."""

    means: TunedMeans
    gain: Gain
    gain_over_before: Gain
    settings: Settings


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of tuning. All means are held out; `k` is the best over all queries.

    `tuned` chooses among all candidates, and keeps the previous settings if it does no better on held-out queries;
    `strategies` has each strategy tuned alone. `over_strategies` is the gain of `calibrated` over every other strategy.
    `dial` maps the share of relevant hits that the recall dial aims to keep to the share it kept on held-out queries.
    `budget` is `calibrated` with the target budget, None if nothing was learned; `why_not` says why. `seen`: the
    previous settings were chosen on labels, so their figures may be better here than elsewhere. If the previous
    settings did not apply, `stands_in` says why, and `before` has the strategy gap with all their other values.
    """

    target: Target
    queries: int
    folds: int
    candidates: int
    k: int
    best_fixed_k: TunedMeans
    oracle: TunedMeans
    before: TunedMeans
    tuned: Tuned
    strategies: Mapping[str, Tuned]
    over_strategies: Mapping[str, Gain]
    dial: Mapping[str, float]
    budget: TunedMeans | None = None
    why_not: str = ""
    seen: bool = False
    stands_in: str = ""

    def __repr__(self) -> str:
        return (
            f"<Tuning: {counted(self.queries, 'query')}, "
            f"{self.tuned.settings.cutoff.strategy} with F1 {self.tuned.means.f1:.3f}, "
            f"best fixed k {self.best_fixed_k.f1:.3f}>"
        )

    @property
    def beats_fixed_k(self) -> bool:
        """Whether the gain is significant, and the required recall, if any, is reached."""
        tuned = self.tuned
        return tuned.gain.of.shows_gain and tuned.means.recall >= self.target.recall

    @property
    def judged(self) -> str:
        """The figure that decides whether settings replace others: the tuned one, or recall when tuning for tokens."""
        return "recall" if self.target.figure == "tokens" else self.target.figure

    def loses_at_most(self, margin: float) -> bool:
        """Whether the tuned settings lose at most `margin` (0 to 1) of the judged figure compared with the previous
        settings: the whole interval of the difference, on the same questions, must be above −`margin`."""
        difference = self.tuned.gain_over_before.each[self.judged]
        alike = difference.mean if self.queries >= MIN_QUERIES else -np.inf
        return (difference.ends[0] if difference.ends else alike) >= -margin

    def only(self, strategy: str) -> Tuning:
        """The same result with this strategy chosen, even if others are better. Raises KeyError if
        the strategy was not tuned."""
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

    Gather `pools` with `gathering(settings)`; every query must have labels. Only the cutoff and the quality layer of
    `settings` change. Raises InputError for fewer than two queries, if the judge is on, and if a reranker failed: then
    only some queries would have its scores. Raises ValueError for fewer than two folds.
    """
    check_tunable(settings, len(pools))
    check_reranked(pools.values())
    n = len(pools)
    texts = [pool.query for pool in pools.values()]
    assigned = folds_of(texts, folds)
    seen = settings.cutoff.calibration is not None or seen_labels(settings) is not None
    settings, stands_in = _applicable(settings, next(iter(pools.values())), user)
    tried_by_strategy = candidates(settings, pools.values(), rerank=rerank)
    tried = [settings, *(each for group in tried_by_strategy.values() for each in group)]
    swept = sweep(pools, qrels, tried, user, progress=progress)
    orders = prefixes_of_pools(pools, qrels, settings, user)
    k, fixed = best_fixed_k(orders, assigned, target)

    def tuned(tables: Tables) -> Tables:
        return picked(tables, target.held_out(tables, assigned))

    def gain(one: Tables, other: Tables) -> Gain:
        of = interval(target.better(one[target.figure], other[target.figure]))
        return Gain(of, {name: interval(one[name] - other[name]) for name in CHOSEN_BY})

    groups, alone, first = dict[str, Tables](), dict[str, Tables](), 1
    chosen: dict[str, Settings] = {}
    for name, group in tried_by_strategy.items():
        last = first + len(group)
        groups[name] = {figure: table[:, first:last] for figure, table in swept.items()}
        alone[name] = tuned(groups[name])
        best = group[target.choose(groups[name])]
        chosen[name] = recorded(best, pools.values(), provenance)
        first = last
    lessons: Lessons | None = None
    over: dict[str, Gain] = {}
    why_not = ""
    try:
        ready = bases(settings, rerank=rerank, depth=DEPTH)
        lessons = learn_by_fold(pools, qrels, ready, user, assigned, provenance, target)
    except ValueError as error:
        why_not = str(error)
    else:
        over = {name: gain(lessons.figures, other) for name, other in alone.items()}
        alone["calibrated"] = lessons.figures
        chosen["calibrated"] = _with_dial(lessons, len(np.unique(assigned)))
    before = {name: table[:, 0] for name, table in swept.items()}
    if not seen:
        # First, so that candidates that are only as good do not replace the settings.
        groups = {BEFORE: {name: table[:, :1] for name, table in swept.items()}, **groups}
        alone, chosen = {BEFORE: before, **alone}, {BEFORE: settings, **chosen}
    after = _held_out(groups, lessons, alone, texts, assigned, target)
    name = _best(groups, lessons.whole if lessons else None, texts, target)
    if BEFORE in alone and not target.choose({f: np.stack([before[f], after[f]], axis=1) for f in CHOSEN_BY}):
        # Tuning does no better on held-out queries than leaving the settings as they are.
        name, after = BEFORE, before

    if replaces is not None:
        some = next(iter(pools.values()))
        replaces, stands_in = _applicable(as_they_are(replaces, some), some, user)
        before = {name: table[:, 0] for name, table in sweep(pools, qrels, [replaces], user).items()}

    def of(rows: Tables, settings: Settings) -> Tuned:
        return Tuned(_means(rows, target), gain(rows, fixed), gain(rows, before), settings)

    return Tuning(
        target=target,
        queries=n,
        folds=len(np.unique(assigned)),
        candidates=len(tried) - 1 + (lessons is not None),
        k=k,
        best_fixed_k=_means(fixed, target),
        oracle=_means(oracle(orders, target), target),
        before=_means(before, target),
        tuned=of(after, chosen[name]),
        strategies={name: of(rows, chosen[name]) for name, rows in alone.items() if name != BEFORE},
        over_strategies=over,
        dial=lessons.dial if lessons else {},
        budget=_means(lessons.budget, target) if lessons else None,
        why_not=why_not,
        seen=seen,
        stands_in=stands_in,
    )


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
    names = [n for n in strategy(cutoff.strategy).reads if n in GRID or n in SHARES]
    own = [f"cutoff.{name}" for name in (*names, "max_results")] if cutoff.enabled else []
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
        values={path: settings.get(path) for path in (own if paths is None else paths)},
        values_only=values_only,
    )
    return settings.with_values({RECORD: record})


def _with_dial(lessons: Lessons, folds: int) -> Settings:
    """Calibrated settings that record what the recall dial kept on held-out queries. Shares for
    which a fold had too few labels are left out."""
    settings, calibration = lessons.whole.settings, lessons.whole.calibration
    shares = {share: round(kept, 3) for share, kept in lessons.dial.items()}
    cutoff = settings.cutoff
    usable = {*shares, *([f"{cutoff.recall:g}"] if cutoff.target == "recall" else [])}
    keeps = {share: least for share, least in calibration.keeps.items() if share in usable}
    measured = calibration.model_copy(update={"held_out": shares, "keeps": keeps, "folds": folds})
    return settings.with_values({"cutoff.calibration": measured})


def _held_out(
    groups: Mapping[str, Tables],
    lessons: Lessons | None,
    alone: Mapping[str, Tables],
    texts: Sequence[str],
    folds: Choice,
    target: Target,
) -> Tables:
    """All figures of each query if the strategy, too, is chosen without the query's fold. `alone`
    has the figures of each strategy tuned alone."""
    held_out = {figure: np.zeros(len(folds)) for figure in SET_FIGURES}
    for fold in np.unique(folds):
        out = folds == fold
        rest = {name: {f: t[~out] for f, t in tables.items()} for name, tables in groups.items()}
        seen = [texts[place] for place in map(int, np.flatnonzero(~out))]
        best = _best(rest, lessons.by_fold[int(fold)] if lessons else None, seen, target)
        for figure, values in held_out.items():
            values[out] = alone[best][figure][out]
    return held_out


def _best(groups: Mapping[str, Tables], learned: Learned | None, texts: Sequence[str], target: Target) -> str:
    """The best strategy for the target on held-out queries.

    Strategies are judged by held-out figures, because the best of a hundred candidates looks better
    than it is, and a learned strategy is not chosen from a hundred.
    """
    n = len(texts)
    honest: dict[str, Tables] = {
        name: picked(tables, target.held_out(tables, folds_of(texts, INNER)) if n > 1 else np.zeros(1, np.intp))
        for name, tables in groups.items()
    }
    if learned is not None:
        honest["calibrated"] = dict(learned.figures)
    columns = {f: np.stack([rows[f] for rows in honest.values()], axis=1) for f in CHOSEN_BY}
    return list(honest)[target.choose(columns)]


def _means(rows: Tables, target: Target) -> TunedMeans:
    means = {name: float(rows[name].mean()) for name in SET_FIGURES}
    each = {name: intervals(rows[name][:, None], 0.0, np.inf if name == "tokens" else 1.0)[0] for name in CHOSEN_BY}
    return TunedMeans(**means, of=each[target.figure], each=each)
