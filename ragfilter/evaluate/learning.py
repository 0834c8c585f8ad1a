"""Learn from labels how likely each hit is to be relevant. Pure; scikit-learn, seeded.

The models are logistic regression and gradient boosting with small trees. Cross-validation over the
given queries chooses between them, the layers before the cutoff, and whether hits are taken in
their order or likeliest first. See docs/design.md#calibrated.

Reranker scores of any range are mapped to 0..1 by a logistic function: the share of relevant chunks among those with
that score. See docs/tuning.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from ragfilter.answer.context_packing import fits
from ragfilter.engine.pool import scan_rules
from ragfilter.engine.replay import replay
from ragfilter.errors import InputError, extra
from ragfilter.evaluate.crossval import Choice, Table, Target, folds_of
from ragfilter.evaluate.labelled_queries import Labels, Qrels, labels_version, relevant_of
from ragfilter.evaluate.metrics import SET_FIGURES, Counts, figures
from ragfilter.evaluate.sweep import ALL, sweep
from ragfilter.layers.cutoff import cut, cutoff_detail
from ragfilter.layers.layer import LayerInput
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.strategies.calibrated import RECALLS, SCORED, Floats, features, labels_for, probabilities
from ragfilter.layers.visibility import effective_user
from ragfilter.model import Pool, User
from ragfilter.protocols import Progress, Reranker
from ragfilter.results.summary import NO_BUDGET
from ragfilter.settings.schema import FEATURES, MIN_LABELLED, Calibration, Settings, Split

DEPTH = 50
"""How many hits of each query are used."""
BOOSTED_FROM = 50
"""Minimum number of labelled queries to try trees too."""
INNER = 4
"""Folds used to choose the kind of model."""


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """The cutoff's input for one query: the query's text; each hit's features, tokens and whether
    it is relevant; the number of pinned hits, and of all chunks that are labelled relevant."""

    query: str
    features: Mapping[str, Floats]
    tokens: Floats
    relevant: Floats
    pinned: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a calibration records about its origin, apart from what the pools say."""

    labels: str = ""
    date: str = ""

    @classmethod
    def of(cls, labels: Labels) -> Provenance:
        """The provenance of these labels, dated today."""
        return cls(labels_version(labels), date.today().isoformat())


@dataclass(frozen=True, slots=True)
class LearnedSettings:
    """Settings with what was learned, and all figures of each query, by models that did not see it."""

    settings: Settings
    figures: Mapping[str, Floats]

    @property
    def calibration(self) -> Calibration:
        assert self.settings.cutoff.calibration is not None
        return self.settings.cutoff.calibration


def learn(
    examples: Mapping[Settings, Sequence[TrainingExample]], pool: Pool, provenance: Provenance, target: Target
) -> LearnedSettings:
    """Learn the calibrated settings that serve the target best on held-out queries. `examples` has the same queries for
    each of several settings; `pool` is one of their pools. Raises ValueError if no hits, or all of them, are
    relevant."""
    n = len(next(iter(examples.values())))
    tried: list[tuple[Settings, Settings, Calibration, bool]] = []
    columns: list[Mapping[str, Floats]] = []
    why = "there are too few labels of relevant hits"
    for base, each in examples.items():
        for boosted in (False, True)[: 2 if n >= BOOSTED_FROM else 1]:
            about = _about(each, base, pool, provenance)
            try:
                chances = _held_out(each, about, base, boosted=boosted)
            except ValueError as error:
                # With other quality settings, there may be more relevant hits to learn from.
                why = str(error)
                continue
            about = about.model_copy(update={"keeps": _keeps(each, chances)})
            for values in _aims(target, about):
                settings = base.with_values(values | {"cutoff.calibration": about})
                tried.append((settings, base, about, boosted))
                columns.append(_outcomes(each, chances, settings))
    if not tried:
        raise ValueError(why)
    best = target.best(columns)
    settings, base, about, boosted = tried[best]
    calibration = calibrate(examples[base], about, _names(base, examples[base]), boosted=boosted)
    return LearnedSettings(settings.with_values({"cutoff.calibration": calibration}), columns[best])


def _names(base: Settings, examples: Sequence[TrainingExample]) -> tuple[str, ...]:
    """The features that always exist with these settings, and that the examples have."""
    scored = always_reranks(base.quality) and all(each.features.keys() >= SCORED for each in examples if each.features)
    return tuple(name for name in FEATURES if scored or name not in SCORED)


def _aims(target: Target, about: Calibration) -> Iterator[dict[str, Any]]:
    """The ways to set a calibrated cutoff for the target."""
    common = {
        "cutoff.enabled": True,
        "cutoff.strategy": "calibrated",
        "cutoff.min_results": 1,
        "cutoff.max_results": about.depth,
    }
    if target.figure == "tokens":
        for share in about.keeps:
            # A recall target takes the likeliest hits first, never a prefix of the ranking.
            yield {**common, "cutoff.target": "recall", "cutoff.recall": float(share), "cutoff.prefix": False}
    else:
        for prefix in (False, True):
            yield {**common, "cutoff.target": target.figure, "cutoff.prefix": prefix}


def _held_out(
    examples: Sequence[TrainingExample], about: Calibration, base: Settings, *, boosted: bool
) -> tuple[Floats, ...]:
    """The probabilities of every query's hits, by a model that did not see the query."""
    folds, names = folds_of([each.query for each in examples], INNER), _names(base, examples)
    chances = [np.zeros(0)] * len(examples)
    for fold in range(INNER):
        training = [each for each, at in zip(examples, folds, strict=True) if at != fold]
        calibration = calibrate(training, about, names, boosted=boosted)
        for place in map(int, np.flatnonzero(folds == fold)):
            if examples[place].features:
                chances[place] = probabilities(calibration, examples[place].features)
    return tuple(chances)


def _keeps(examples: Sequence[TrainingExample], chances: Sequence[Floats]) -> dict[str, float]:
    """Split-conformal thresholds by share: the ⌊(1 − share)(n + 1)⌋-th smallest probability of n relevant hits. A new
    relevant hit reaches it with a probability of at least the share. Shares that need more labels are left out."""
    relevant = [c[each.relevant > 0] for each, c in zip(examples, chances, strict=True)]
    ordered = np.sort(np.concatenate(relevant))
    n = len(ordered)
    return {
        # Slightly lower, so that the hit that defines the threshold stays.
        f"{share:g}": _short(ordered[int((1 - share) * (n + 1) + 1e-9) - 1] * 0.999)
        for share in RECALLS
        if n >= labels_for(share)
    }


def _outcomes(examples: Sequence[TrainingExample], chances: Sequence[Floats], settings: Settings) -> dict[str, Floats]:
    """All figures of each query if its hits had these probabilities, without the layers after the cutoff."""
    counts = [_counts(*pair, settings) for pair in zip(examples, chances, strict=True)]
    wanted = [each.wanted for each in examples]
    return figures(Counts(*np.array(counts).T), wanted)


def _counts(each: TrainingExample, chances: Floats, settings: Settings) -> Counts:
    cutoff, order = settings.cutoff, np.arange(len(chances))
    if not cutoff.prefix:
        free = order[each.pinned :]
        order[each.pinned :] = free[np.argsort(-chances[free], kind="stable")]
    kept = order[: cut([*(1 - chances[order])], cutoff, pinned=each.pinned).kept]
    return Counts(len(kept), each.relevant[kept].sum(), tokens=each.tokens[kept].sum())


def _about(examples: Sequence[TrainingExample], base: Settings, pool: Pool, provenance: Provenance) -> Calibration:
    """A calibration that records its origin, but has not learned anything yet."""
    return Calibration(
        collection=pool.collection,
        embedder=pool.embedder,
        space=pool.space,
        reranker=reranker_key(base.quality) if SCORED.intersection(_names(base, examples)) else "",
        labels=provenance.labels,
        queries=len(examples),
        relevant=int(sum(each.relevant.sum() for each in examples)),
        date=provenance.date,
        depth=DEPTH,
        beyond=_short(np.mean([each.wanted - each.relevant.sum() for each in examples])),
        intercept=0.0,
    )


def example(pool: Pool, labels: Mapping[str, int], settings: Settings, user: User | None) -> TrainingExample:
    """The input of the cutoff under `settings`, whatever the cutoff's own settings are."""
    base = settings.model_copy(update={"cutoff": ALL})
    result = replay(pool, base, user)
    trace, detail = result.trace("cutoff"), cutoff_detail(result)
    ids = detail.ids[:DEPTH] if detail else ()
    hits = {hit.id: hit for hit in result.hits}
    inputs = LayerInput(base, pool, scan_rules(pool), effective_user(user, base))
    relevant = relevant_of(labels)
    return TrainingExample(
        pool.query,
        features([hits[i] for i in ids], inputs) if ids else {},
        np.array([float(fits([hits[i]], NO_BUDGET)[1]) for i in ids]),
        np.array([float(i in relevant) for i in ids]),
        min(trace.count("pinned"), DEPTH),
        len(relevant),
    )


def calibrate(
    examples: Sequence[TrainingExample], about: Calibration, names: Sequence[str], *, boosted: bool
) -> Calibration:
    """Fit the log-odds of relevance over all hits of these examples, and add them to `about`.
    Raises ValueError if no hits, or all of them, are relevant."""
    with_hits = [each for each in examples if each.features]
    if not with_hits:
        raise ValueError("no query has a hit")
    rows = np.concatenate([np.stack([each.features[name] for name in names], axis=1) for each in with_hits])
    right = np.concatenate([each.relevant for each in with_hits])
    if not 0 < right.sum() < len(right):
        raise ValueError("learning needs both relevant and irrelevant hits")
    return about.model_copy(update=(_boosted if boosted else _logistic)(rows, right, names))


def _logistic(rows: Table, right: Floats, names: Sequence[str]) -> dict[str, Any]:
    """Fit with L2 regularisation on standardised features; the returned weights are for the original features."""
    with extra("eval"):
        from sklearn.linear_model import LogisticRegression

    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    spread[spread < 1e-9] = np.inf
    model = LogisticRegression(max_iter=2000).fit((rows - mean) / spread, right)
    weights = model.coef_[0] / spread
    return {
        "intercept": _short(model.intercept_[0] - weights @ mean),
        "weights": {name: _short(w) for name, w in zip(names, weights, strict=True) if w},
    }


def _boosted(rows: Table, right: Floats, names: Sequence[str]) -> dict[str, Any]:
    """Fit sixty trees of depth two, small enough for people to read."""
    with extra("eval"):
        from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(
        n_estimators=60, max_depth=2, min_samples_leaf=30, subsample=0.7, random_state=0
    ).fit(rows, right)
    base = right.mean()
    grown = (_split(each[0].tree_, 0, names, model.learning_rate) for each in model.estimators_)
    return {"intercept": _short(np.log(base / (1 - base))), "trees": tuple(grown)}


def _split(tree: Any, node: int, names: Sequence[str], rate: float) -> Split | float:
    low, high = tree.children_left[node], tree.children_right[node]
    if low == high:
        return _short(rate * tree.value[node][0][0])
    return Split(
        feature=names[tree.feature[node]],
        at=_short(tree.threshold[node]),
        low=_split(tree, low, names, rate),
        high=_split(tree, high, names, rate),
    )


def _short(value: Any) -> float:
    """Round to four significant digits, to keep the file readable."""
    return float(f"{value:.4g}")


Examples = Mapping[Settings, Sequence[TrainingExample]]
"""Settings → the cutoff's input for every query."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """What was learned from all labelled queries (`whole`), and for each fold from the others. `figures` measure each
    query with what was learned without its fold; `budget` does the same if the context budget decides how many chunks
    are kept. `dial` maps the share of relevant hits to keep to the share that was kept on held-out queries."""

    whole: LearnedSettings
    by_fold: Mapping[int, LearnedSettings]
    figures: dict[str, Table]
    budget: dict[str, Table]
    dial: Mapping[str, float]


def learn_by_fold(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    bases: Sequence[Settings],
    user: User | None,
    folds: Choice,
    provenance: Provenance,
    target: Target,
) -> Lessons:
    """Learn a cutoff after each of `bases`, leaving out one fold at a time. Raises ValueError for
    fewer than `MIN_LABELLED` queries, and if there is nothing to learn."""
    if len(pools) < MIN_LABELLED:
        raise ValueError(f"learning needs at least {MIN_LABELLED} labelled queries")
    examples = {base: [example(pool, qrels[i], base, user) for i, pool in pools.items()] for base in bases}
    some = next(iter(pools.values()))

    def learned(places: Choice) -> LearnedSettings:
        chosen = {base: [each[i] for i in places] for base, each in examples.items()}
        return learn(chosen, some, provenance, target)

    by_fold = {int(fold): learned(np.flatnonzero(folds != fold)) for fold in np.unique(folds)}
    outcomes = [
        # Once for the target, and once to fill the context budget.
        sweep({i: pool}, qrels, [learned_settings, learned_settings.with_values({"cutoff.target": "budget"})], user)
        for (i, pool), fold in zip(pools.items(), folds, strict=True)
        for learned_settings in (by_fold[int(fold)].settings,)
    ]
    figures, budget = (
        {name: np.concatenate([one[name][:, way] for one in outcomes]) for name in SET_FIGURES} for way in (0, 1)
    )
    return Lessons(
        whole=learned(np.arange(len(pools))),
        by_fold=by_fold,
        figures=figures,
        budget=budget,
        dial=_dial(examples, by_fold, folds),
    )


def _dial(examples: Examples, learned: Mapping[int, LearnedSettings], folds: Choice) -> dict[str, float]:
    shares = set.intersection(*(set(each.calibration.keeps) for each in learned.values()))
    relevant, kept = 0.0, dict.fromkeys(sorted(shares), 0.0)
    for fold, each in learned.items():
        about = each.calibration
        base = next(b for b in examples if b.quality == each.settings.quality)
        for one in (examples[base][int(place)] for place in np.flatnonzero(folds == fold)):
            if one.features:
                chances = probabilities(about, one.features)
                relevant += one.relevant.sum()
                for share in kept:
                    stays = chances >= about.keeps[share]
                    stays[: one.pinned] = True
                    kept[share] += one.relevant[stays].sum()
    return {share: float(n / relevant) if relevant else 1.0 for share, n in kept.items()}


@dataclass(frozen=True, slots=True)
class RerankFit:
    """The logistic map, and what it was fitted on."""

    slope: float
    offset: float
    queries: int
    hits: int
    relevant: int


def fit_reranker(
    pools: Mapping[str, Pool],
    qrels: Mapping[str, Mapping[str, int]],
    reranker: Reranker,
    *,
    depth: int,
    progress: Progress | None = None,
) -> RerankFit:
    """Fit the map to the scores of each pool's first `depth` hits. Raises InputError for too few
    labels or if the scores do not rise with relevance, and ModelError."""
    scores, labels = list[float](), list[float]()
    for done, (query_id, pool) in enumerate(pools.items(), start=1):
        relevant = relevant_of(qrels[query_id])
        hits = [hit for hit in pool.hits if hit.found_by == "query"][:depth]
        scores += reranker.score(pool.query, [hit.chunk.passage for hit in hits])
        labels += [float(hit.id in relevant) for hit in hits]
        if progress is not None:
            progress(done, len(pools))
    if len(pools) < MIN_LABELLED:
        raise InputError(f"Fitting needs at least {MIN_LABELLED} labelled queries.", remedy="Label more.")
    right = np.array(labels)
    if not 0 < right.sum() < len(right):
        raise InputError("Fitting needs both relevant and irrelevant hits.", remedy="Label more queries.")
    fit = _logistic(np.array(scores)[:, None], right, ["score"])
    slope: float = fit["weights"].get("score", 0.0)
    if slope <= 0:
        raise InputError(
            "The reranker's scores do not rise with relevance.", remedy="Check the model, or use another reranker."
        )
    return RerankFit(slope, fit["intercept"], len(pools), len(right), int(right.sum()))
