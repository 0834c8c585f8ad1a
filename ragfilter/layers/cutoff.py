"""Cutoff: cut the ranked list where relevance falls off, and say why. `cut` cuts a bare list of values.

Source: Adaptive Filtering Algorithm and Adaptive Result Filtering; docs/design.md#cutoff."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ragfilter.errors import SettingsError
from ragfilter.layers.layer import (
    BACKGROUND_FROM,
    LayerInput,
    LayerOutput,
    LayerSpec,
    Mark,
    background_reach,
    estimate_background,
    place_words,
)
from ragfilter.layers.quality import ORDERED, UNSCORED, scores_are_current
from ragfilter.layers.strategies.calibrated import BETA, order_key
from ragfilter.layers.strategies.strategy import EPSILON, strategies, strategy
from ragfilter.layers.top_k import limit as top_k_limit
from ragfilter.layers.tuned_on import check_tuned
from ragfilter.model import Cut, CutoffDetail, Decision, Hit, LayerTrace, Pool, PoolResult, ValueKind
from ragfilter.settings.schema import Cutoff, Settings, read_limits
from ragfilter.text import numbers

SHALLOW = f"cut by gap instead: a background needs at least {BACKGROUND_FROM} hits"
PASSAGES = "; the background is taken to be a third nearer, since many hits share their titles"
UNWEIGHED = "cut by gap, since the calibration needs rerank scores: rerank always"

MAX_RESULTS_PATH, MIN_RESULTS_PATH, STRATEGY_PATH = "cutoff.max_results", "cutoff.min_results", "cutoff.strategy"
LIMITS_PATH = "cutoff.limits"
FIRST = "strategy gap_threshold distance_offset max_results skip_first jumps b_extra relative_offset target recall"


def cut(values: Sequence[float], settings: Cutoff, *, pinned: int = 0, background: float | None = None) -> Cut:
    """Decide how many of `values` to keep, and say why.

    `values` (lower is better) are in the current order. The first `pinned` of them are pins, which are always kept.
    Only the first max_results are examined. At least min_results are kept, or all if there are fewer; max_results takes
    precedence over min_results. `background` is the value of chunks unrelated to the query, by default the mean of the
    farther half of `values`. Raises ValueError if a value is not a finite number or `pinned` is negative."""
    for place, value in enumerate(values, start=1):
        if not math.isfinite(value):
            raise ValueError(f"value {place} is {value}; only finite numbers can be cut")
    if pinned < 0:
        raise ValueError(f"pinned is {pinned}; it must be at least 0")
    if not values:
        return Cut(settings.strategy, 0, "nothing to cut")
    pins = min(pinned, len(values))
    examined = values[: max(settings.max_results, pins)]
    background = estimate_background(values) if background is None else background
    proposed = strategy(settings.strategy).cut(examined, settings, pins, background)
    return _constrain(proposed, settings, n=len(values), examined=len(examined), pins=pins)


def check_distances_suffice(settings: Cutoff) -> None:
    """Raise SettingsError if the strategy needs more than distances."""
    if strategy(settings.strategy).values_of is not None:
        raise SettingsError(
            f"{settings.strategy} needs the hits' texts, not only their distances.",
            remedy="Use it to filter hits, or choose another strategy.",
        )


def cut_or_gap(values: Sequence[float], settings: Cutoff, *, pinned: int, background: float | None) -> Cut:
    """Apply `cut` to the hits of a pool. Without a `background`, strategies that need one are replaced by gap."""
    if background is None and strategy(settings.strategy).reads_pool:
        settings = settings.model_copy(update={"strategy": "gap"})
    return cut(values, settings, pinned=pinned, background=background)


def cuts_by_strategy(detail: CutoffDetail, settings: Cutoff, *, pinned: int) -> tuple[Cut, ...]:
    """The cut of every strategy for the same values, except those that lack a background or use values of their own."""
    own = detail.cut.strategy
    names = [name for name, s in strategies().items() if s.values_of is None or name == own]
    chosen = [settings.model_copy(update={"strategy": name}) for name in names]
    cuts = [cut_or_gap(detail.values, each, pinned=pinned, background=detail.background) for each in chosen]
    return tuple(each for name, each in zip(names, cuts, strict=True) if each.strategy == name)


def _constrain(proposed: Cut, settings: Cutoff, *, n: int, examined: int, pins: int) -> Cut:
    """Apply min_results, k and the pins to the strategy's cut, and say so in the reason."""
    fewest = min(settings.min_results, examined)
    kept = max(proposed.kept, fewest, pins)
    k, least = settings.max_results, settings.min_results
    over = f"takes precedence over the minimum of {least}"
    k_wins = examined == k < min(n, least)
    if kept > proposed.kept:
        raised = f"max_results = {k} {over}" if k_wins else f"at least {least}"
        raised = f"{pins} pinned" if pins > fewest else raised
        reason = f"{proposed.reason}; raised from {proposed.kept} to {kept} ({raised})"
        return replace(proposed, kept=kept, reason=reason, strategy_kept=proposed.kept)
    if kept == examined < n and proposed.strategy != "fixed":
        precedence = f" and {over}" if k_wins else ""
        reason = f"{proposed.reason}; max_results = {k} leaves out the other {n - examined}{precedence}"
        return replace(proposed, reason=reason)
    return proposed


# -- the layer -------------------------------------------------------------------------------------


def cutoff_detail(result: PoolResult) -> CutoffDetail | None:
    """The details of the cutoff; None if it is off or had nothing to cut."""
    detail = result.trace("cutoff").detail
    return detail if isinstance(detail, CutoffDetail) and detail.ids else None


def settings_that_cut(result: PoolResult) -> Settings:
    """The settings with the strategy that cut, in place of one that lacked a background, scores or a calibration."""
    detail = cutoff_detail(result)
    if detail is None:
        return result.settings
    return result.settings.with_values({STRATEGY_PATH: detail.cut.strategy})


def unknown_score_warning(result: PoolResult) -> str:
    """A warning if no hit has the score to cut by, or a score that has a limit; empty otherwise."""
    settings, detail = result.settings.cutoff, cutoff_detail(result)
    if detail is None:
        return ""
    effects = dict.fromkeys(read_limits(settings.limits), "its limit has no effect")
    effects |= {settings.score: f"the cutoff compares the {detail.value_name}"} if settings.score else {}
    unknown = [
        f"No hit has a score named {name!r}, so {effect}."
        for name, effect in effects.items()
        if not distances_by_score(result.hits, name, result.pool, result.settings)
    ]
    score_names = sorted({name for hit in result.hits for name in hit.scores}) or ["none"]
    return " ".join([*unknown, f"Named scores here: {', '.join(score_names)}."]) if unknown else ""


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Keep the pins and the hits before the cut. `detail` holds the cut and its values."""
    check_tuned(inputs.settings, inputs.pool)
    pins, free = inputs.split(hits)
    beyond = _beyond_limits(hits, inputs) if inputs.settings.cutoff.limits else {}
    free = tuple([hit for hit in free if hit.id not in beyond]) if beyond else free
    given = _cut_input(pins, free, inputs)
    hits = pins + given.free
    applied = inputs.settings.cutoff
    applied = applied.model_copy(update={"strategy": given.stand_in or applied.strategy})
    result = cut_or_gap(given.values, applied, pinned=len(pins), background=given.background)
    if not inputs.explain:
        return LayerOutput(hits[: result.kept])
    shallow = result.strategy != applied.strategy
    applied = applied.model_copy(update={"strategy": result.strategy})
    fallback_reason = SHALLOW if shallow else given.fallback_reason
    if given.stand_in == "fixed":
        result = replace(result, gaps=(), reason=f"{result.reason}; {fallback_reason}")
    ids = tuple(hit.id for hit in hits)
    detail = CutoffDetail(result, ids, given.values, given.kind, given.background, fallback_reason, applied.score)
    note = result.reason + given.note
    if given.stand_in == "gap" or (shallow and given.kind != "rerank"):
        note += f"; {fallback_reason}"
    elif given.kind in ("rerank", "lowered"):
        why = ", since the reranker reordered the hits" if given.kind == "rerank" else ""
        note += f"; the values are {detail.value_name}{why}"
    decide = _decide_by_probability if given.kind == "probability" else _decide
    decisions: list[Decision] = []
    for pin, value in zip(pins, given.values, strict=False):
        known = given.kind != "rerank" or pin.rerank_score is not None
        decisions.append(Decision(pin.id, "cutoff", "pinned", inputs.pinned[pin.id], value if known else None))
    for place, hit in enumerate(given.free, start=len(pins) + 1):
        decisions.append(decide(hit, place, detail, applied))
    detail = replace(detail, cut=replace(result, reason=result.reason + given.note))
    return LayerOutput(hits[: result.kept], (*decisions, *beyond.values()), detail=detail, note=note)


def _beyond_limits(hits: tuple[Hit, ...], inputs: LayerInput) -> dict[str, Decision]:
    """The drop of each hit, by id, that is beyond the limit of every search that found it."""
    limits, beyond = read_limits(inputs.settings.cutoff.limits), dict[str, Decision]()
    columns = {name: distances_by_score(hits, name, inputs.pool, inputs.settings, places=True) for name in limits}
    for hit in hits:
        values = {name: column[hit.id] for name, column in columns.items() if hit.id in column}
        apart = all(value > limits[name] + EPSILON for name, value in values.items())
        if values and apart and hit.id not in inputs.pinned:
            name, value = next(iter(values.items()))
            reason = f"{name} {numbers.apart(value, '>', limits[name])}"
            beyond[hit.id] = Decision(hit.id, "cutoff", "dropped", reason, value, limits[name], LIMITS_PATH)
    return beyond


@dataclass(frozen=True, slots=True)
class _CutInput:
    """The values that the cut compares: `free` holds the hits that are not pinned, in order, and
    `values` one value per hit, pins first. `stand_in` replaces a strategy that cannot use them."""

    free: tuple[Hit, ...]
    kind: ValueKind
    values: tuple[float, ...]
    background: float | None
    stand_in: str = ""
    fallback_reason: str = ""
    note: str = ""


def _cut_input(pins: tuple[Hit, ...], free: tuple[Hit, ...], inputs: LayerInput) -> _CutInput:
    """Use the first that exists of: the score that the settings name, the strategy's own values,
    the rerank score, the distance. If there is only an order, use the places in it."""
    settings, pool = inputs.settings.cutoff, inputs.pool
    values_of = strategy(settings.strategy).values_of
    hits = pins + free
    score = "" if values_of else settings.score
    if score_by_id := distances_by_score(hits, score, pool, inputs.settings):
        return _by_score(pins, free, score_by_id, inputs)
    if inputs.reranked and pool.scores_are_ranks:
        return _by_place(pins, free, ORDERED, inputs.raw_background)
    note = f"; no hit has a score named {score}" if score else ""
    if inputs.reranked and free:
        rest = tuple(1.0 - (hit.rerank_score or 0.0) for hit in free)
        # A pin without a score gets the first free hit's value, so that there is no step.
        first = (rest[0] if p.rerank_score is None else 1.0 - p.rerank_score for p in pins)
        known = [1.0 - hit.rerank_score for hit in inputs.own_hits if hit.rerank_score is not None]
        background = estimate_background(known) if known and len(inputs.own_hits) >= BACKGROUND_FROM else None
        given = _CutInput(free, "rerank", (*first, *rest), background, note=note)
    else:
        adjusted, far = inputs.adjusted_distances, inputs.raw_background
        values = tuple(adjusted.get(hit.id, hit.distance) for hit in hits)
        if pool.space == "rank":
            return _CutInput(free, "place", values, far, "fixed", f"{UNSCORED} to find a cliff in", note)
        far, nearer = _nearer(far, values, inputs)
        note += nearer
        given = _CutInput(free, "lowered" if adjusted else "distance", values, far, note=note)
    if values_of is None:
        return given
    fallback = replace(given, stand_in="gap", fallback_reason=UNWEIGHED)
    return _by_probability(pins, free, values_of(hits, inputs), settings) or fallback


def _nearer(far: float | None, values: Sequence[float], inputs: LayerInput) -> tuple[float | None, str]:
    """The background that distances are compared with, which is nearer for passages of longer texts, and a note."""
    reach = background_reach(inputs.own_hits)
    if far is None or not values or reach == 1:
        return far, ""
    note = PASSAGES if inputs.settings.cutoff.strategy == "relative" else ""
    return min(values) + reach * (far - min(values)), note


def _by_score(pins: tuple[Hit, ...], free: tuple[Hit, ...], of: Mapping[str, float], inputs: LayerInput) -> _CutInput:
    """Use the score that the settings name. Hits without it count as far as the farthest hit."""
    score, far = inputs.settings.cutoff.score, max(of.values())
    free = tuple(sorted(free, key=lambda h: (of.get(h.id, far), h.id not in of)))
    own = distances_by_score(inputs.own_hits, score, inputs.pool, inputs.settings).values()
    background = estimate_background(tuple(own)) if len(own) >= BACKGROUND_FROM else None
    if any(hit.scores[score].metric == "rank" for hit in pins + free if score in hit.scores):
        return _by_place(pins, free, f"{score} scores only give an order", background)
    values, note = tuple(of.get(hit.id, far) for hit in pins + free), ""
    if score == "dense":
        background, note = _nearer(background, values, inputs)
    return _CutInput(free, "named", values, background, note=note)


def _by_place(pins: tuple[Hit, ...], free: tuple[Hit, ...], reason: str, background: float | None) -> _CutInput:
    places = tuple(map(float, range(1, len(pins) + len(free) + 1)))
    return _CutInput(free, "place", places, background, "fixed", reason)


def _by_probability(
    pins: tuple[Hit, ...], free: tuple[Hit, ...], values: Sequence[float] | None, settings: Cutoff
) -> _CutInput | None:
    """Use 1 − the probability of relevance; None if it is unknown. The background is a probability
    of 0. If the best set is wanted rather than a prefix, the most probable hits come first."""
    if values is None:
        return None
    if not settings.prefix or settings.target not in BETA:
        of = dict(zip((hit.id for hit in pins + free), values, strict=True))
        free = tuple(sorted(free, key=lambda h: order_key(of[h.id], h, settings.target)))
        values = [of[hit.id] for hit in pins + free]
    return _CutInput(free, "probability", tuple(values), 1.0)


def distances_by_score(
    hits: Sequence[Hit], score: str, pool: Pool, settings: Settings, *, places: bool = False
) -> dict[str, float]:
    """Scores of this name as distances, by hit id. With `places`, a score that only gives an order becomes the rank."""
    distances: dict[str, float] = {}
    by_distance = score == "dense" and not any(score in hit.scores for hit in hits)
    reranked = score == "rerank" and scores_are_current(pool, settings.quality) and not pool.scores_are_ranks
    for hit in hits if score else ():
        if score in hit.scores:
            own = hit.scores[score]
            distances[hit.id] = own.rank if places and own.metric == "rank" else own.distance
        elif by_distance and pool.space != "rank":
            distances[hit.id] = hit.distance
        elif reranked and hit.rerank_score is not None:
            distances[hit.id] = 1.0 - hit.rerank_score
    return distances


def _decide(hit: Hit, place: int, detail: CutoffDetail, settings: Cutoff) -> Decision:
    """Decide on a hit that is not pinned; `limit` is the largest value before the cut."""
    result, values, name = detail.cut, detail.values, detail.value_name
    value = values[place - 1]
    if place > result.kept and place > settings.max_results:
        reason = f"{place_words(place, hit)}beyond the first {settings.max_results}"
        return Decision(hit.id, "cutoff", "dropped", reason, value, setting=MAX_RESULTS_PATH)
    rank, limit = result.cliff_after_rank, result.limit
    if rank is not None:
        limit = values[rank - 1]
        beyond = place > rank
        before = f"before the cliff of {result.gap:.3f} after hit {rank}"
        over = f" ≥ {settings.gap_threshold:.3f}" if "gap_threshold" in strategy(result.strategy).reads else ""
        after = f"after the cliff: gap {result.gap:.3f}{over} after hit {rank}"
    elif limit is not None:
        beyond = value > limit + EPSILON
        before = f"{name} {value:.3f} ≤ {limit:.3f}"
        after = f"{name} {numbers.apart(value, '>', limit)}"
    else:
        beyond = False
        before, after = result.reason, f"after the cut: {result.reason}"
    spec = strategy(result.strategy)
    if place > result.kept:
        limit = values[result.kept - 1] if limit is None and result.kept else limit
        return Decision(hit.id, "cutoff", "dropped", after, value, limit, f"cutoff.{spec.decides(result)}")
    if beyond:
        extra = "b_extra" in spec.reads and place <= (rank or 0) + settings.b_extra
        least = min(settings.min_results, settings.max_results)
        few = f"{settings.b_extra} more" if extra else f"at least {least}"
        before = f"{after}; kept, as {few} stay"
    return Decision(hit.id, "cutoff", "kept", before, value, limit, _holder(place, result))


def _decide_by_probability(hit: Hit, place: int, detail: CutoffDetail, settings: Cutoff) -> Decision:
    """Decide on a hit whose probability is known; `limit` is the last value kept, if values were compared."""
    result, values = detail.cut, detail.values
    value = values[place - 1]
    by = MAX_RESULTS_PATH if place > settings.max_results else STRATEGY_PATH
    if value >= 1 and settings.calibration is not None:
        depth = settings.calibration.depth
        reason = f"{place_words(place, hit)}beyond the first {depth} that are weighed"
        return Decision(hit.id, "cutoff", "dropped", reason, value, setting=by)
    kept = place <= result.kept
    where = "" if kept else "after the cut: "
    reason = f"{where}probability {1 - value:.2f}; {result.reason.partition(';')[0]}"
    limit = values[result.kept - 1] if result.kept and settings.target != "budget" else None
    by = _holder(place, result) if kept else by
    return Decision(hit.id, "cutoff", "kept" if kept else "dropped", reason, value, limit, by)


def _holder(place: int, result: Cut) -> str:
    """The setting that keeps a hit that the strategy would drop; empty if none does."""
    return "" if result.strategy_kept is None or place <= result.strategy_kept else MIN_RESULTS_PATH


def _line(trace: LayerTrace, result: PoolResult) -> str:
    detail = trace.detail
    return detail.cut.reason if isinstance(detail, CutoffDetail) else f"keeps {trace.n_out} of {trace.n_in}"


def _plain(decision: Decision, hit: Hit, result: PoolResult) -> str:
    if decision.setting == MAX_RESULTS_PATH:
        return f"came after the first {result.settings.cutoff.max_results}"
    detail = cutoff_detail(result)
    if detail is None:
        return "came after the cut"
    if detail.cut.cliff_after_rank is not None:
        return "came after the cliff"
    by_limit = detail.cut.limit is not None and decision.limit is not None
    is_distance = strategy(detail.cut.strategy).values_of is None
    return "were too far from the best match" if by_limit and is_distance else "came after the cut"


def _unused(settings: Settings) -> frozenset[str]:
    """Settings that have no effect, for example those that only other strategies read."""
    cutoff = settings.cutoff
    every = frozenset(name for each in strategies().values() for name in each.reads)
    idle = every - frozenset(strategy(cutoff.strategy).reads)
    wants_scores = cutoff.score or settings.retrieval.lexical
    return idle.union(
        {"prefix"} if cutoff.target not in BETA else (),
        {"tuned_on"} if cutoff.tuned_on is None else (),
        {"recall"} if cutoff.target != "recall" else (),
        {"score"} if strategy(cutoff.strategy).values_of or not wants_scores else (),
        () if wants_scores or cutoff.limits else {"limits"},
    )


def _unreached(trace: LayerTrace, result: PoolResult) -> dict[str, int | str]:
    paths: dict[str, int | str] = {}
    if trace.n_in <= result.settings.cutoff.max_results:
        paths[MAX_RESULTS_PATH] = trace.n_in
    if isinstance(trace.detail, CutoffDetail):
        cut = trace.detail.cut
        if cut.cliff_after_rank is None and "gap_threshold" in strategy(cut.strategy).reads:
            largest = max((gap.size for gap in cut.gaps if not gap.skipped), default=0.0)
            skipped = " after the skipped ones" if any(gap.size > largest for gap in cut.gaps) else ""
            paths["cutoff.gap_threshold"] = f"the largest gap{skipped} is {largest:.3f}"
    return paths


SPEC: LayerSpec = LayerSpec(
    name="cutoff",
    title="Cutoff",
    mark=Mark("○", "circle-open", "#76849b", "#828083"),
    apply=apply,
    candidates=lambda settings: settings.cutoff.max_results,
    # A calibration learned with one reranker is refused with another.
    reads=("quality",),
    off=lambda settings: (
        "off; the judge decides" if settings.judge.enabled else f"off; top_k keeps at most {top_k_limit(settings)}"
    ),
    line=_line,
    first=tuple(FIRST.split()),
    unused=_unused,
    relax=lambda trace, result: ("Keep at least 2", {"cutoff.min_results": 2}),
    plain=_plain,
    unreached=_unreached,
    holds=MIN_RESULTS_PATH,
    limits=True,
    reads_pool=lambda settings: strategy(settings.cutoff.strategy).reads_pool,
)
