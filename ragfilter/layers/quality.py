"""Quality: keep only good matches. If the first ones are poor, rerank or look further.

Source: Adaptive Retrieval System, "Retrieval Flow", "Edge Cases" and "Fallback Behavior". Pinned hits are always kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragfilter.layers.layer import EPSILON, Cost, LayerInput, LayerOutput, LayerSpec, Mark, place_words
from ragfilter.model import Decision, Hit, LayerTrace, Need, Outcome, Pool, PoolResult, Widening, WidthCheck, similarity
from ragfilter.settings.schema import TUNED_SHARE, Quality, Settings
from ragfilter.text import numbers

SHARE_PATH = "quality.background_share"
THRESHOLD_PATH = "quality.reranker_threshold"
FIRST_PATH, MOST_PATH, KEPT_PATH = "quality.min_top_k", "quality.max_top_k", "quality.reranker_top_k"
MARK = Mark("▽", "triangle-down-open", "#2b43f2", "#cfe3fa")
FARTHER = replace(MARK, sign="▷", symbol="triangle-right-open", about="too far down")
STEP = 2
NOISE = 2 / 3
"""If the best hit is below this share of a threshold, a lower one would only let in noise."""
ORDERED = "scores that are not fitted to labels only give an order"
UNSCORED = "the store gives no scores"
MESSAGE = "Nothing matches the query well enough. Rephrase the question."


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Keep good hits. If there are none, the result is empty, with status `low_quality_results`."""
    quality = inputs.settings.quality
    pins, free = inputs.split(hits)
    own = _check(free, inputs, quality)
    if not pins:
        return own
    pinned = tuple(Decision(hit.id, "quality", "pinned", inputs.pinned[hit.id]) for hit in pins)
    # Pins count as results, so the status stays ok.
    return replace(own, hits=pins + own.hits, decisions=pinned + own.decisions, status="ok", message="")


def widths(quality: Quality) -> tuple[int, ...]:
    """The numbers of hits to check in turn: 3, 5, 7, 9, 10 with the defaults."""
    return (*range(quality.min_top_k, quality.max_top_k, STEP), quality.max_top_k)


def _check(hits: tuple[Hit, ...], inputs: LayerInput, quality: Quality) -> LayerOutput:
    if inputs.pool.space == "rank" and quality.mode == "when_poor":
        return _unscored(hits, quality)
    bar = _threshold(inputs, quality)
    good = bar.pick(hits[: quality.min_top_k])
    if good and quality.mode == "when_poor":
        return _keep_good(hits, good, quality.min_top_k, bar)
    if quality.reranker == "none" or not hits:
        return _widen(hits, inputs, quality)
    key = reranker_key(quality)
    candidates = hits[: quality.max_top_k]
    scored = scores_are_current(inputs.pool, quality) and all(h.rerank_score is not None for h in candidates)
    error = next((f.error for f in inputs.pool.failures if f.model == key), "")
    if scored and not error:
        return _rerank(hits, candidates, quality, ordered=inputs.pool.scores_are_ranks)
    output = _widen(hits, inputs, quality)
    if error:
        note = f"{quality.reranker} failed ({error}); candidates are checked by distance instead"
        fallback = tuple(
            d
            if d.outcome == "dropped"
            else d._replace(outcome="fallback", reason=f"{d.reason}; fallback, the reranker failed")
            for d in output.decisions
        )
        return replace(output, decisions=fallback, note=note, failed=True)
    have = "chunk has" if len(candidates) == 1 else "chunks have"
    why = f"{len(candidates)} {have} not been scored by {quality.reranker} yet"
    need = Need("rerank", "quality", tuple(hit.id for hit in candidates), why)
    note = "not reranked yet; for now, candidates are checked by distance"
    return replace(output, needs=(need,), note=note)


def always_reranks(quality: Quality) -> bool:
    """Whether every query is reranked, so that the cutoff sees scores instead of distances."""
    return quality.enabled and quality.mode == "always" and quality.reranker != "none"


def scores_are_current(pool: Pool, quality: Quality) -> bool:
    """Whether the pool's rerank scores come from the reranker in the settings."""
    return pool.reranker == reranker_key(quality)


def reranker_key(quality: Quality) -> str:
    """The key of the reranker in the settings; a pool records the key for its scores."""
    fit = ""
    if quality.reranker_slope:
        fit = f" ({quality.reranker_slope:g} s + {quality.reranker_offset:g})"
    model = f":{quality.reranker_model}" if quality.reranker in ("cross_encoder", "http") else ""
    return f"{quality.reranker}{model}{fit}"


@dataclass(frozen=True, slots=True)
class _Threshold:
    """What makes a candidate good: a similarity ≥ `limit`, or a distance ≤ `limit`."""

    inputs: LayerInput
    limit: float
    share: float | None = None

    @property
    def setting(self) -> str:
        return "quality.score_threshold" if self.share is None else SHARE_PATH

    def value(self, hit: Hit) -> float:
        return self.inputs.similarity(hit) if self.share is None else hit.distance

    def pick(self, hits: Sequence[Hit]) -> list[Hit]:
        return [hit for hit in hits if self.passes(self.value(hit))]

    def passes(self, value: float) -> bool:
        return value >= self.limit - EPSILON if self.share is None else value <= self.limit + EPSILON

    def reason(self, value: float) -> str:
        signs = ("≥", "<") if self.share is None else ("≤", ">")
        good = f"{value:.3f} {signs[0]} {self.limit:.3f}" if self.passes(value) else ""
        pair = good or numbers.apart(value, signs[1], self.limit)
        if self.share is None:
            return f"similarity {pair}"
        way = "the way to " if self.inputs.pool.space == "ip" else ""
        return f"distance {pair}, {self.share:.2f} of {way}the background"


def _threshold(inputs: LayerInput, quality: Quality) -> _Threshold:
    background = inputs.background if quality.good_by == "background" else None
    if background is None:
        return _Threshold(inputs, quality.score_threshold)
    share, best = quality.background_share, 0.0
    if inputs.pool.space == "ip":
        # These distances may be negative, so the share counts from the best one, not from 0.
        best = min(hit.distance for hit in inputs.own_hits)
    return _Threshold(inputs, best + share * (background - best), share)


def _keep_good(hits: tuple[Hit, ...], good: list[Hit], width: int, bar: _Threshold) -> LayerOutput:
    if not bar.inputs.explain:
        return LayerOutput(tuple(good))
    limit = FIRST_PATH if width == bar.inputs.settings.quality.min_top_k else MOST_PATH
    decisions = []
    for place, hit in enumerate(hits, start=1):
        if place > width:
            reason = f"{place_words(place, hit)}beyond the first {width} checked"
            decisions.append(Decision(hit.chunk.id, "quality", "dropped", reason, None, None, limit))
            continue
        value = bar.value(hit)
        outcome: Outcome = "kept" if bar.passes(value) else "dropped"
        decisions.append(Decision(hit.id, "quality", outcome, bar.reason(value), value, bar.limit, bar.setting))
    return LayerOutput(tuple(good), tuple(decisions))


def _unscored(hits: tuple[Hit, ...], quality: Quality) -> LayerOutput:
    # No hit can be checked, so keep as many as a plain search would.
    width = quality.min_top_k
    decisions = []
    for place, hit in enumerate(hits, start=1):
        stays = place <= width
        reason = f"{UNSCORED}; {'among' if stays else 'beyond'} the first {width}"
        outcome: Outcome = "fallback" if stays else "dropped"
        decisions.append(Decision(hit.id, "quality", outcome, reason, float(place), float(width), FIRST_PATH))
    note = f"{UNSCORED}; the first {width} unchecked" if hits else ""
    return LayerOutput(hits[:width], tuple(decisions), note=note)


def _widen(hits: tuple[Hit, ...], inputs: LayerInput, quality: Quality) -> LayerOutput:
    if inputs.pool.space == "rank":
        return _unscored(hits, quality)
    if not hits:
        return LayerOutput(())
    bar = _threshold(inputs, quality)
    tried: list[WidthCheck] = []
    good: list[Hit] = []
    for width in widths(quality):
        first = hits[:width]
        good = bar.pick(first)
        tried.append(WidthCheck(width, len(good), max(map(inputs.similarity, first))))
        if good or width >= len(hits):
            break
    least = bar.limit if bar.share is None else similarity(bar.limit, inputs.pool.space)
    output = _keep_good(hits, good, tried[-1].width, bar)
    output = replace(output, detail=Widening(least, tuple(tried)))
    return output if good else replace(output, status="low_quality_results", message=MESSAGE)


def _rerank(hits: tuple[Hit, ...], candidates: tuple[Hit, ...], quality: Quality, *, ordered: bool) -> LayerOutput:
    # If scores only give an order, every hit is good enough.
    limit = -math.inf if ordered else quality.reranker_threshold
    ranked = sorted(candidates, key=lambda hit: -_score(hit))
    most = quality.reranker_top_k
    kept = [hit for hit in ranked if _score(hit) >= limit - EPSILON][:most]
    decisions = []
    for place, hit in enumerate(ranked, start=1):
        value = _score(hit)
        if value < limit - EPSILON:
            reason = f"rerank score {numbers.apart(value, '<', limit)}"
            decisions.append(Decision(hit.id, "quality", "dropped", reason, value, limit, THRESHOLD_PATH))
        elif place > most:
            reason = f"place {place} after reranking, only {most} are kept"
            value, line = (place, most) if ordered else (value, limit)
            decisions.append(Decision(hit.id, "quality", "dropped", reason, value, line, KEPT_PATH))
        elif ordered:
            reason = f"place {place} by the reranker, whose scores are not fitted"
            decisions.append(Decision(hit.id, "quality", "kept", reason))
        else:
            reason = f"rerank score {value:.3f} ≥ {limit:.3f}, place {place}"
            decisions.append(Decision(hit.id, "quality", "kept", reason, value, limit))
    for place, hit in enumerate(hits[len(candidates) :], start=len(candidates) + 1):
        reason = f"{place_words(place, hit)}beyond the {quality.max_top_k} that are reranked"
        decisions.append(Decision(hit.id, "quality", "dropped", reason, setting=MOST_PATH))
    note = f"reranked {len(candidates)} chunks"
    if ordered:
        note += f"; {ORDERED}, so no threshold applies"
    cut = sum(d.setting == KEPT_PATH for d in decisions)
    if cut and not ordered:
        note += f"; reranker_top_k = {most} leaves out {cut} that are good enough"
    output = LayerOutput(tuple(kept), tuple(decisions), note=note, reranked=True)
    if kept:
        return output
    return replace(output, status="low_quality_results", message=MESSAGE, note=f"{note}, none is good enough")


def _score(hit: Hit) -> float:
    return -1.0 if hit.rerank_score is None else hit.rerank_score


def _line(trace: LayerTrace, result: PoolResult) -> str:
    path = _path(trace.detail) if isinstance(trace.detail, Widening) else ""
    if trace.note or not trace.n_out:
        return f"{trace.note or 'no chunk is good enough'}{path}"
    keeps = [d for d in trace.decisions if d.outcome == "kept" and d.limit is not None]
    by = "distance ≤" if keeps and keeps[0].setting == SHARE_PATH else "similarity ≥"
    limit = f" with {by} {keeps[0].limit:.3f}" if keeps else ""
    return f"keeps {trace.n_out}{limit}{path}{_capped(trace, keeps, result)}"


def _capped(trace: LayerTrace, keeps: Sequence[Decision], result: PoolResult) -> str:
    """Name the setting that drops good candidates: ``; min_top_k = 3 leaves out 497 that are good enough``."""
    beyond = {d.chunk_id: d.setting for d in trace.decisions if d.setting in (FIRST_PATH, MOST_PATH)}
    bar = keeps[0].limit if keeps and keeps[0].limit is not None else math.inf
    space, by_share = result.pool.space, bool(keeps) and keeps[0].setting == SHARE_PATH
    distances = [hit.distance for hit in result.hits if hit.id in beyond]
    good = sum(d <= bar + EPSILON if by_share else similarity(d, space) >= bar - EPSILON for d in distances)
    if not good:
        return ""
    path = next(iter(beyond.values()))
    return f"; {path.removeprefix('quality.')} = {result.settings.get(path)} leaves out {good:,} that are good enough"


def _path(detail: Widening) -> str:
    """Say how far it looked and how many were good: ``; first 3, 5: none, first 7: 2``."""
    poor = ", ".join(str(tried.width) for tried in detail.widths if not tried.good)
    parts = [f"first {poor}: none"] if poor else []
    parts += [f"first {tried.width}: {tried.good}" for tried in detail.widths if tried.good]
    return f"; {', '.join(parts)}"


COSTS: Mapping[str, Cost] = {"none": "free", "http": "API call"}


def _unused(settings: Settings) -> frozenset[str]:
    quality = settings.quality
    idle = {"background_share" if quality.good_by == "similarity" else "score_threshold"}
    if quality.reranker == "none":
        idle |= {n for n in Quality.model_fields if n == "mode" or n.startswith("reranker_")}
    elif quality.reranker == "late_interaction":
        idle |= {"reranker_model", "reranker_slope", "reranker_offset"}
    if quality.reranker != "http":
        idle.add("reranker_batch")
    return frozenset(idle)


def _relax(trace: LayerTrace, result: PoolResult) -> tuple[str, dict[str, Any]] | None:
    """Suggest the best value compared with the threshold as its new value, unless it is noise."""
    compared = [d for d in trace.decisions if d.value is not None and d.limit is not None]
    if any(d.setting == SHARE_PATH for d in compared):
        now = result.settings.quality.background_share
        # A background share of 0 gives nothing to suggest.
        nearest = min((d.value / d.limit for d in compared if d.value is not None and d.limit), default=math.inf)
        if math.isinf(nearest) or result.pool.space == "ip":
            return None
        share = math.ceil(100 * now * nearest) / 100
        if share > TUNED_SHARE:
            far = (
                f"The best chunk is at {share:.3f} of the background distance, above the background share of {now:.3f}"
            )
            return f"{far}. A higher share would let in noise.", {}
        return f"Raise the background share to {numbers.distance(share)}", {SHARE_PATH: share}
    path = THRESHOLD_PATH if trace.reranked else "quality.score_threshold"
    limit = result.settings.get(path)
    best = max((d.value or 0.0 for d in compared), default=0.0)
    # Round down, so that the chunk reaches it and it is easy to read.
    lower = math.floor(100 * best) / 100
    if lower >= limit:
        return None
    name = "rerank threshold" if trace.reranked else "similarity threshold"
    if lower < NOISE * limit:
        far = f"The best chunk reaches {best:.3f}, far below the {name} of {limit:.3f}"
        return f"{far}. A lower threshold would let in noise.", {}
    return f"Lower the {name} from {limit:.3f} to {lower:.3f}", {path: lower}


def _plain(decision: Decision, hit: Hit, result: PoolResult) -> str:
    if decision.setting in (FIRST_PATH, MOST_PATH, KEPT_PATH):
        return "came too far down the list"
    return "did not match well enough"


def _unreached(trace: LayerTrace, result: PoolResult) -> dict[str, int | str]:
    free = trace.n_in - trace.count("pinned")
    if any(d.setting in (FIRST_PATH, MOST_PATH) and d.outcome == "dropped" for d in trace.decisions):
        width = {}
    elif free <= result.settings.quality.min_top_k and not trace.reranked:
        width = {FIRST_PATH: free}
    else:
        width = {MOST_PATH: free}
    return {**width, **({KEPT_PATH: f"{numbers.chunk_count(trace.n_out)} stay"} if trace.reranked else {})}


SPEC: LayerSpec = LayerSpec(
    name="quality",
    title="Quality",
    mark=MARK,
    apply=apply,
    marks=dict.fromkeys((FIRST_PATH, MOST_PATH, KEPT_PATH), FARTHER),
    candidates=lambda settings: settings.quality.max_top_k,
    line=_line,
    limits=True,
    cost=lambda settings: COSTS.get(settings.quality.reranker, "local model"),
    reads_pool=lambda settings: settings.quality.good_by == "background",
    first=("score_threshold", "background_share", "reranker", "reranker_model", "reranker_threshold"),
    unused=_unused,
    relax=_relax,
    plain=_plain,
    unreached=_unreached,
)
