"""Tune the cutoff, and whether to rerank, on labelled queries. All figures are cross-validated.

Pools are gathered once, and every candidate is then replayed over them. A candidate that is best on
four folds is measured on the fifth. So is everything that it is compared with: the best fixed k,
the previous settings, and each strategy tuned alone. What is learned from labels is learned again
on the four folds, and compared by figures that were held out within them. Only the oracle, the best
prefix of each query's unfiltered ranking, knows the labels. Settings that drop chunks from within
that ranking, or change it, can do better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, product
from statistics import median
from typing import Any

import numpy as np

from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.crossval import Choice, Interval, Table, assign_folds, bootstrap, pick
from ragfilter.evaluate.learn import DEPTH, INNER, Learned, Provenance
from ragfilter.evaluate.learning import Learning
from ragfilter.evaluate.metrics import Scores
from ragfilter.evaluate.sweep import Outcome, nothing, prefixes, sweep
from ragfilter.evaluate.target import CHOSEN_BY, Tables, Target
from ragfilter.layers.calibration import read
from ragfilter.layers.cutoff import origin
from ragfilter.layers.origin import TunedOn
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.strategies.base import far_end
from ragfilter.layers.strategies.registry import STRATEGIES, strategy
from ragfilter.model import PUBLIC, Pool, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings

Rows = dict[str, Table]
"""Every figure, with one value a query."""
FEW = 20
"""Labelled queries below which the figures say little."""
RERANKED = 20
"""How many hits are reranked for the candidates that rerank."""

BEFORE = "before"
"""The settings from before, as one more strategy to choose."""

KS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 50)
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
    """Means over queries; `of` is the measure that was tuned, with its interval. `unlabelled`
    counts the kept chunks without a label, which count as irrelevant; `f1_most` is F1 if all of
    them were relevant."""

    precision: float
    recall: float
    f1: float
    f2: float
    kept: float
    tokens: float
    unlabelled: float
    f1_most: float
    of: Interval


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better one is than the other, query by query; `of` is the measure's, positive where
    it is better."""

    f1: float
    f2: float
    of: Interval


@dataclass(frozen=True, slots=True)
class Tuned:
    """One way to tune: what it is worth on held-out queries, alone, beside the best fixed k and
    beside the settings before; and the settings that it chooses over all queries."""

    means: Means
    gain: Gain
    gain_over_before: Gain
    settings: Settings


@dataclass(frozen=True, slots=True)
class Tuning:
    """What came out. All means are held out; `k` is the best over all queries.

    `tuned` chooses among all candidates, and is the settings from before where that does no better
    on held-out queries; `strategies` are each
    tuned alone. `over_strategies` is the gain of `calibrated` over every other strategy. `dial`: by
    the share of relevant hits that the recall dial was to keep, the share it kept on queries held
    out. `why_not` says why nothing was learned. `seen`: the settings from before were learned from
    labels, so that the figures before are better than they would be elsewhere.
    """

    target: Target
    queries: int
    folds: int
    candidates: int
    k: int
    best_fixed_k: Means
    oracle: Means
    before: Means
    tuned: Tuned
    strategies: Mapping[str, Tuned]
    over_strategies: Mapping[str, Gain]
    dial: Mapping[str, float]
    why_not: str = ""
    seen: bool = False

    @property
    def beats_fixed_k(self) -> bool:
        """Whether the interval of the gain is above 0, and a required recall is reached."""
        tuned = self.tuned
        return tuned.gain.of.low > 0 and tuned.means.recall >= self.target.recall

    def only(self, strategy: str) -> Tuning:
        """The same, with this strategy chosen whatever the others are worth. Raises KeyError for
        one that was not tuned."""
        return replace(self, tuned=self.strategies[strategy])


def gathering(settings: Settings, *, rerank: bool) -> Settings:
    """The settings to gather with, so that the pools hold all that the candidates need."""
    ready = _reranking(settings, DEPTH) if rerank else settings
    # Nobody waits for one answer here, and a score that comes late is no failure.
    return ready.with_values(
        {
            "quality.reranker_timeout_ms": 600_000,
            "cutoff.max_results": max(DEPTH, settings.cutoff.max_results),
        }
    )


def tune(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    user: User = PUBLIC,
    *,
    target: Target = Target(),
    folds: int = 5,
    rerank: bool = True,
    provenance: Provenance = Provenance(),
    progress: Progress | None = None,
) -> Tuning:
    """The settings that serve `target` best, and what tuning so is worth on held-out queries.

    `pools` are gathered with `gathering(settings)`; every query has labels. Of `settings` only the
    cutoff and the quality layer change. Raises ValueError for fewer than two queries or folds.
    """
    named = candidates(settings, pools.values(), rerank=rerank)
    flat = [each for group in named.values() for each in group]
    made = _tables(sweep(pools, qrels, [settings, *flat], user, progress=progress))
    ranked = _tables(prefixes(pools, qrels, settings, user))
    # Where nothing is relevant, the best prefix is the empty one.
    empty = _tables(nothing(qrels[i] for i in pools))
    orders = {name: np.hstack([table, empty[name]]) for name, table in ranked.items()}
    assigned = assign_folds(len(pools), folds)

    def tuned(tables: Tables) -> Rows:
        return _pick(tables, target.held_out(tables, assigned))

    def gain(one: Rows, other: Rows) -> Gain:
        of = target.better(one[target.figure], other[target.figure])
        f1, f2 = (float((one[name] - other[name]).mean()) for name in ("f1", "f2"))
        return Gain(f1, f2, bootstrap(of))

    before = {name: table[:, 0] for name, table in made.items()}
    seen = bool(settings.cutoff.calibration) or origin(settings) is not None
    ends = list(accumulate(map(len, named.values()), initial=1))
    groups = {
        name: {figure: table[:, first:last] for figure, table in made.items()}
        for name, (first, last) in zip(named, pairwise(ends), strict=True)
    }
    fixed = tuned(ranked)
    alone = {name: tuned(tables) for name, tables in groups.items()}
    some = next(iter(pools.values()))
    chosen = {
        name: _recorded(named[name][target.choose(tables)], some, len(pools), provenance)
        for name, tables in groups.items()
    }
    learned: dict[int, Learned] = {}
    whole: Learned | None = None
    over: dict[str, Gain] = {}
    dial: dict[str, float] = {}
    why_not = ""
    try:
        learning = Learning(pools, qrels, _bases(settings, rerank=rerank, depth=DEPTH), user)
        learned = learning.by_fold(assigned, provenance, target)
        whole = learning.learn(np.arange(len(pools)), provenance, target)
    except ValueError as error:
        why_not = str(error)
    else:
        rows = {
            f: table[:, 0] for f, table in _tables(learning.held_out(learned, assigned)).items()
        }
        over = {name: gain(rows, other) for name, other in alone.items()}
        dial = learning.dial(learned, assigned)
        alone["calibrated"], chosen["calibrated"] = rows, _told_dial(whole.settings, dial)
    if not seen:
        # First, so that nothing changes for what is as good.
        groups = {BEFORE: {name: table[:, :1] for name, table in made.items()}, **groups}
        alone, chosen = {BEFORE: before, **alone}, {BEFORE: settings, **chosen}
    after = {figure: np.zeros(len(pools)) for figure in READ}
    for fold in np.unique(assigned):
        out = assigned == fold
        rest = {n: {f: t[~out] for f, t in tables.items()} for n, tables in groups.items()}
        best, place = _best(rest, learned.get(int(fold)), target)
        for figure, values in after.items():
            known = alone[best][figure] if place < 0 else groups[best][figure][:, place]
            values[out] = known[out]

    name = _best(groups, whole, target)[0]
    if BEFORE in alone and not target.choose(
        {f: np.stack([before[f], after[f]], axis=1) for f in CHOSEN_BY}
    ):
        # Tuning serves held-out queries no better than to leave things as they are.
        name, after = BEFORE, before

    def of(rows: Rows, settings: Settings) -> Tuned:
        return Tuned(_means(rows, target), gain(rows, fixed), gain(rows, before), settings)

    return Tuning(
        target=target,
        queries=len(pools),
        folds=len(np.unique(assigned)),
        candidates=len(flat) + (whole is not None),
        k=1 + target.choose(ranked),
        best_fixed_k=_means(fixed, target),
        oracle=_means(_pick(orders, np.argmax(orders[target.oracle], axis=1)), target),
        before=_means(before, target),
        tuned=of(after, chosen[name]),
        strategies={name: of(rows, chosen[name]) for name, rows in alone.items() if name != BEFORE},
        over_strategies=over,
        dial=dial,
        why_not=why_not,
        seen=seen,
    )


def _recorded(settings: Settings, pool: Pool, queries: int, provenance: Provenance) -> Settings:
    """The settings with what their cutoff was tuned on; `pool` is any of those."""
    quality, cutoff = settings.quality, settings.cutoff
    reads = [n for n in strategy(cutoff.strategy).reads if n in GRID or n in SHARES]
    made = TunedOn(
        collection=pool.collection,
        embedder=pool.embedder,
        space=pool.space,
        reranker=reranker_key(quality) if always_reranks(quality) else "",
        labels=provenance.labels,
        queries=queries,
        date=provenance.date,
        strategy=cutoff.strategy,
        values={name: getattr(cutoff, name) for name in (*reads, "max_results")},
    )
    return settings.with_values({"cutoff.tuned_on": made.to_json()})


def _told_dial(settings: Settings, dial: Mapping[str, float]) -> Settings:
    """Calibrated settings that say what the recall dial kept on held-out queries."""
    known = read(settings.cutoff.calibration)
    shares = {share: round(kept, 3) for share, kept in dial.items()}
    told = known.model_copy(update={"held_out": shares})
    return settings.with_values({"cutoff.calibration": told.to_json()})


def _best(groups: Mapping[str, Tables], learned: Learned | None, target: Target) -> tuple[str, int]:
    """The strategy that serves the target best on held-out queries among these, and its best
    candidate; −1 for what was learned.

    Each strategy counts with what it is worth held out: the best of a hundred candidates looks
    better than it is, and what was learned is no candidate of a hundred.
    """
    n = len(next(iter(groups.values()))["f1"])
    honest = {
        name: _pick(tables, target.held_out(tables, assign_folds(n, INNER))) if n > 1 else tables
        for name, tables in groups.items()
    }
    if learned is not None:
        honest["calibrated"] = learned.figures
    columns = {
        figure: np.stack([rows[figure].ravel()[:n] for rows in honest.values()], axis=1)
        for figure in CHOSEN_BY
    }
    name = list(honest)[target.choose(columns)]
    return name, target.choose(groups[name]) if name in groups else -1


def candidates(
    settings: Settings, pools: Iterable[Pool], *, rerank: bool
) -> dict[str, tuple[Settings, ...]]:
    """What is tried, by strategy: as the quality layer is set, without it, and always reranked.
    What a strategy learns is no figure to try."""
    spread = _spread(pools)
    return {
        spec.name: tuple(
            base.with_values(values)
            for base in _bases(settings, rerank=rerank, depth=RERANKED)
            # 1 − rerank score runs from 0 to 1, whatever the space.
            for values in _grid(
                spec.name, spec.reads, 1.0 if base.quality.mode == "always" else spread
            )
        )
        for spec in STRATEGIES
        if spec.weigh is None
    }


def _bases(settings: Settings, *, rerank: bool, depth: int) -> list[Settings]:
    """What may come before the cutoff."""
    first = settings.with_values(
        {"cutoff.enabled": True, "cutoff.calibration": "", "cutoff.tuned_on": ""}
    )
    bases = [first]
    if settings.quality.enabled:
        bases.append(first.with_values({"quality.enabled": False}))
    if rerank:
        bases.append(_reranking(first, depth))
    return bases


def _reranking(settings: Settings, depth: int) -> Settings:
    """The same, with everything reranked that comes into the quality layer, and nothing dropped."""
    quality = settings.quality
    depth = max(depth, quality.max_top_k)
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
            # Distances that were tuned without a reranker are refused with one.
            "cutoff.tuned_on": "",
        }
    )


def _spread(pools: Iterable[Pool]) -> float:
    """The usual distance of the background from the best hit."""
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


def _tables(made: Sequence[Sequence[Outcome]]) -> dict[str, Table]:
    """Every figure, with a row a query and a column a candidate."""
    return {
        name: np.array([[read(one) for one in row] for row in made], dtype=np.float64)
        for name, read in READ.items()
    }


def _f2(scores: Scores) -> float:
    """The weighted harmonic mean in which recall counts twice as much as precision."""
    weighted = 4 * scores.precision + scores.recall
    return 5 * scores.precision * scores.recall / weighted if weighted else 0.0


def _pick(tables: Tables, chosen: Choice) -> Rows:
    return {name: pick(table, chosen) for name, table in tables.items()}


def _means(rows: Rows, target: Target) -> Means:
    means = {name: float(values.mean()) for name, values in rows.items()}
    return Means(**means, of=bootstrap(rows[target.figure]))


READ: Mapping[str, Callable[[Outcome], float]] = {
    "precision": lambda one: one.scores.precision,
    "recall": lambda one: one.scores.recall,
    "f1": lambda one: one.scores.f1,
    "f2": lambda one: _f2(one.scores),
    "kept": lambda one: one.kept,
    "tokens": lambda one: one.tokens,
    "unlabelled": lambda one: one.unlabelled,
    "f1_most": lambda one: one.f1_most,
}
