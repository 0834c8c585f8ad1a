"""Cutoff: cut the ranked list where relevance falls off.

Source: Adaptive Filtering Algorithm and Adaptive Result Filtering; docs/design.md#cutoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from ragfilter.layers.base import BACKGROUND_FROM, LayerInput, LayerOutput, in_order
from ragfilter.layers.calibration import read
from ragfilter.layers.cut import cut_hits
from ragfilter.layers.origin import read_tuned
from ragfilter.layers.quality import UNSCORED, Quality
from ragfilter.layers.spec import LayerSpec, Mark, kept_of
from ragfilter.layers.strategies.base import EPSILON, far_end
from ragfilter.layers.strategies.calibrated import BETA, order_key
from ragfilter.layers.strategies.registry import STRATEGIES, described, strategy
from ragfilter.model import Cut, CutoffDetail, Decision, Hit, LayerTrace, PoolResult
from ragfilter.settings.field import MOST_CHUNKS, JsonTable, OneOf, Section, setting
from ragfilter.text import numbers

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings

DISTANCE = "distance"
RERANK = "1 − rerank score"
LOWERED = "distance less shared words"
CHANCE = "1 − probability"
PLACE = "place in the store's order"

MAX_RESULTS, MIN_RESULTS, STRATEGY = "cutoff.max_results", "cutoff.min_results", "cutoff.strategy"


class Cutoff(Section):
    enabled: bool = setting(True, "Cut the ranked list where relevance drops.")
    strategy: Annotated[str, OneOf(described)] = setting("gap", "Where to cut.", label="Strategy")
    max_results: int = setting(
        5, "Maximum number of chunks kept (k).",
        unit="chunks", ge=1, le=MOST_CHUNKS, ceiling=50, label="Max results (k)",
    )  # fmt: skip
    min_results: int = setting(
        2, "Minimum number of chunks kept, if there are that many. A smaller k takes precedence.",
        unit="chunks", ge=0, le=MOST_CHUNKS, ceiling=20, label="Min results",
    )  # fmt: skip
    gap_threshold: float = setting(
        0.1, "Smallest gap between distances that counts as a cliff. Lower values cut more.",
        unit="distance", ge=0, le=4, step=0.005, ceiling=0.5, label="Gap threshold",
    )  # fmt: skip
    distance_offset: float = setting(
        0.4, "If there is no cliff, keep chunks within this distance of the best one.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=1.5, label="Distance offset",
    )  # fmt: skip
    skip_first: bool = setting(
        True, "gap: never treat the first step as a cliff. If off, the best chunk may be the "
        "only one kept.",
        label="Skip the first step",
    )  # fmt: skip
    jumps: int = setting(
        1, "autocut: number of the jump to cut at, counting from 1.",
        unit="jumps", ge=1, le=50, ceiling=10, label="Jumps",
    )  # fmt: skip
    b_extra: int = setting(
        0, "adaptive_k: number of chunks kept after the drop.",
        unit="chunks", ge=0, le=100, ceiling=20, label="Extra after the drop",
    )  # fmt: skip
    tail: float = setting(
        0.1, "adaptive_k, and spike without a bend: the share of chunks at the far end. A drop "
        "before one of them does not count. At least one of four or more chunks; 0 for none.",
        unit="share", ge=0, le=0.9, step=0.01, label="Tail",
    )  # fmt: skip
    relative_offset: float = setting(
        0.3, "relative: keep chunks up to this share of the way from the best distance to the "
        "background.",
        unit="share", ge=0, le=1, step=0.01, label="Relative offset",
    )  # fmt: skip
    target: Literal["f1", "f2", "recall", "budget"] = setting(
        "f1",
        "calibrated: what decides how many chunks are kept: the highest expected F1, or F2 "
        "(recall counts twice); a target recall; or the context budget.",
        label="Target",
    )
    recall: float = setting(
        0.9, "calibrated, target recall: share of the relevant hits to keep, of those that reach "
        "the cutoff. Rounded up to 50, 60, 70, 75, 80, 85, 90, 95 or 98%.",
        unit="share", ge=0.5, le=0.98, step=0.01, label="Recall",
    )  # fmt: skip
    prefix: bool = setting(
        False,
        "calibrated, target f1 or f2: keep the first hits in incoming order, instead of the most "
        "likely hits at any position.",
        label="Keep the order",
    )
    calibration: Annotated[str, JsonTable(read)] = setting(
        "", "calibrated: what tuning learned from labels.", label="Calibration"
    )
    tuned_on: Annotated[str, JsonTable(read_tuned)] = setting(
        "", "What the strategy and its values were tuned on, recorded by tuning. Distances tuned "
        "with another model, space or reranker are refused.", label="Tuned",
    )  # fmt: skip


SCALED = frozenset(
    name
    for name, leaf in Cutoff.model_fields.items()
    if isinstance(leaf.json_schema_extra, dict) and leaf.json_schema_extra["unit"] == DISTANCE
)
"""The settings that mean something for one model and space only."""


def _check_scale(inputs: LayerInput) -> None:
    """Raises SettingsError for distances that were tuned on another scale. What somebody set
    themselves is theirs."""
    settings = inputs.settings.cutoff
    if not settings.tuned_on:
        return
    tuned = read_tuned(settings.tuned_on)
    names = tuple(
        name
        for name in strategy(settings.strategy).reads
        if name in SCALED and tuned.values.get(f"cutoff.{name}") == getattr(settings, name)
    )
    if names:
        tuned.check_fits(names, inputs.pool, inputs.settings.quality)


def cut_of(result: PoolResult) -> CutoffDetail | None:
    """The details of the cutoff, None if it is off or had nothing to cut."""
    detail = result.trace("cutoff").detail
    return detail if isinstance(detail, CutoffDetail) and detail.ids else None


def acting(result: PoolResult) -> Settings:
    """The settings with the strategy that cut: another stands in for one that lacks a background,
    scores or a calibration."""
    detail = cut_of(result)
    if detail is None:
        return result.settings
    return result.settings.with_values({"cutoff.strategy": detail.cut.strategy})


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Keep the pins and the hits before the cut. `detail` holds the cut and its values."""
    _check_scale(inputs)
    settings = inputs.settings.cutoff
    pins = tuple(hit for hit in hits if hit.id in inputs.pinned)
    free = tuple(hit for hit in hits if hit.id not in inputs.pinned)
    reranked = inputs.reranked and bool(free)
    unscored = inputs.pool.space == "rank" and not reranked
    weigh = strategy(settings.strategy).weigh
    chances = None if weigh is None or unscored else weigh(pins + free, inputs)
    unknown = weigh is not None and not unscored and chances is None
    if chances is not None and (not settings.prefix or settings.target not in BETA):
        values_of = dict(zip((hit.id for hit in pins + free), chances, strict=True))
        target = settings.target
        free = tuple(sorted(free, key=lambda hit: order_key(values_of[hit.id], hit, target)))
        chances = tuple(values_of[hit.id] for hit in pins + free)
    hits = pins + free
    if chances is not None:
        name, values = CHANCE, chances
    elif reranked:
        name, values = RERANK, _scores(pins, free)
    else:
        name = PLACE if unscored else LOWERED if inputs.lowered else DISTANCE
        values = tuple(inputs.lowered.get(hit.id, hit.distance) for hit in hits)
    if unscored or unknown:
        settings = settings.model_copy(update={"strategy": "fixed" if unscored else "gap"})
    # What does not fit has no chance.
    background = 1.0 if chances is not None else _background(inputs, reranked=reranked)
    made = cut_hits(values, settings, pinned=len(pins), background=background)
    if not inputs.explain:
        return LayerOutput(hits[: made.kept])
    shallow = made.strategy != settings.strategy
    if shallow:
        settings = settings.model_copy(update={"strategy": made.strategy})
    instead = (
        f"{UNSCORED} to find a cliff in"
        if unscored
        else "cut by gap, since the calibration needs rerank scores: rerank always"
        if unknown
        else f"cut by gap instead: a background needs at least {BACKGROUND_FROM} hits"
        if shallow
        else ""
    )
    if unscored:
        made = replace(made, gaps=(), reason=f"{made.reason}; {instead}")
    decisions = [
        _pin(hit, inputs.pinned[hit.id], value, name == RERANK)
        for hit, value in zip(pins, values, strict=False)
    ]
    decide = _decide if chances is None else _decide_likely
    for place, hit in enumerate(free, start=len(pins) + 1):
        decisions.append(decide(hit, place, values, made, settings, name))
    note = made.reason
    if unknown or (shallow and not reranked):
        note += f"; {instead}"
    elif name == RERANK:
        note += f"; the values are {RERANK}, since the reranker reordered the hits"
    elif name == LOWERED:
        note += f"; the values are {LOWERED}"
    ids = tuple(hit.id for hit in hits)
    detail = CutoffDetail(made, ids, values, name, background, instead)
    return LayerOutput(hits[: made.kept], tuple(decisions), detail=detail, note=note)


def _background(inputs: LayerInput, *, reranked: bool) -> float | None:
    """The mean of the farther half of what the query itself found, in the scale in force; None
    if that is too little to know it."""
    found = inputs.found
    if not reranked or len(found) < BACKGROUND_FROM:
        return inputs.far_end
    scores = [1.0 - h.rerank_score for h in found if h.rerank_score is not None]
    return far_end(scores) if scores else None


def _scores(pins: Sequence[Hit], free: Sequence[Hit]) -> tuple[float, ...]:
    """1 − rerank score of each hit. A pin without a score makes no step to what follows."""
    rest = tuple(1.0 - (hit.rerank_score or 0.0) for hit in free)
    return tuple(rest[0] if p.rerank_score is None else 1.0 - p.rerank_score for p in pins) + rest


def _pin(hit: Hit, reason: str, value: float, reranked: bool) -> Decision:
    known = not reranked or hit.rerank_score is not None
    return Decision(hit.id, "cutoff", "pinned", reason, value if known else None)


def _decide(
    hit: Hit, place: int, values: Sequence[float], made: Cut, settings: Cutoff, name: str
) -> Decision:
    """The decision over a hit that is not pinned; `limit` is the largest value before the cut."""
    value = values[place - 1]
    if place > made.kept and place > settings.max_results:
        reason = f"{in_order(place, hit)}beyond k {settings.max_results}"
        return Decision(hit.id, "cutoff", "dropped", reason, value, setting=MAX_RESULTS)
    rank, limit = made.cliff_after_rank, made.limit
    if rank is not None:
        limit = values[rank - 1]
        past = place > rank
        before = f"before the cliff of {made.gap:.3f} after hit {rank}"
        after = _after_cliff(made, settings)
    elif limit is not None:
        past = value > limit + EPSILON
        best = min(values[: max(settings.max_results, made.kept)])
        before = f"within best + {limit - best:.3f}"
        after = f"{name} {numbers.apart(value, '>', limit)}"
    else:
        past = False
        before, after = made.reason, f"after the cut: {made.reason}"
    if place > made.kept:
        limit = values[made.kept - 1] if limit is None and made.kept else limit
        by = f"cutoff.{strategy(made.strategy).decides(made)}"
        return Decision(hit.id, "cutoff", "dropped", after, value, limit, by)
    if past:
        extra = (
            "b_extra" in strategy(made.strategy).reads and place <= (rank or 0) + settings.b_extra
        )
        least = min(settings.min_results, settings.max_results)
        few = f"{settings.b_extra} more" if extra else f"at least {least}"
        before = f"{after}; kept, as {few} stay"
    return Decision(hit.id, "cutoff", "kept", before, value, limit, _holder(place, made))


def _decide_likely(
    hit: Hit, place: int, values: Sequence[float], made: Cut, settings: Cutoff, name: str
) -> Decision:
    """The decision over a hit whose probability is known; `limit` is the last value kept, where
    values were compared."""
    value = values[place - 1]
    by = MAX_RESULTS if place > settings.max_results else STRATEGY
    if value >= 1:
        depth = read(settings.calibration).depth
        reason = f"{in_order(place, hit)}beyond the first {depth} that are weighed"
        return Decision(hit.id, "cutoff", "dropped", reason, value, setting=by)
    kept = place <= made.kept
    where = "" if kept else "after the cut: "
    reason = f"{where}probability {1 - value:.2f}; {made.reason.partition(';')[0]}"
    limit = values[made.kept - 1] if made.kept and settings.target != "budget" else None
    by = _holder(place, made) if kept else by
    return Decision(hit.id, "cutoff", "kept" if kept else "dropped", reason, value, limit, by)


def _holder(place: int, made: Cut) -> str:
    """The setting that keeps a hit which the strategy would drop."""
    return "" if made.wished is None or place <= made.wished else MIN_RESULTS


def _after_cliff(made: Cut, settings: Cutoff) -> str:
    compared = "gap_threshold" in strategy(made.strategy).reads
    over = f" ≥ {settings.gap_threshold:.3f}" if compared else ""
    return f"after the cliff: gap {made.gap:.3f}{over} after hit {made.cliff_after_rank}"


def _line(trace: LayerTrace, result: PoolResult) -> str:
    detail = trace.detail
    return detail.cut.reason if isinstance(detail, CutoffDetail) else kept_of(trace, result)


def _plain(decision: Decision, hit: Hit, result: PoolResult) -> str:
    detail = result.trace("cutoff").detail
    made = detail.cut if isinstance(detail, CutoffDetail) else None
    if decision.setting == MAX_RESULTS:
        return f"came after the first {result.settings.cutoff.max_results}"
    if made is not None and made.cliff_after_rank is not None:
        return "came after the cliff"
    measured = made is not None and strategy(made.strategy).weigh is None
    if made is not None and measured and made.limit is not None and decision.limit is not None:
        return "were too far from the best match"
    return "came after the cut"


def _unused(settings: Settings) -> frozenset[str]:
    """What other strategies read and the chosen one does not."""
    cutoff = settings.cutoff
    every = frozenset(name for each in STRATEGIES for name in each.reads)
    reads = frozenset(strategy(cutoff.strategy).reads)
    idle = {"prefix"} if cutoff.target not in BETA else set()
    idle |= set() if cutoff.tuned_on else {"tuned_on"}
    return (every - reads) | idle | ({"recall"} if cutoff.target != "recall" else set())


def _unreached(trace: LayerTrace, result: PoolResult) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    if trace.n_in <= result.settings.cutoff.max_results:
        found[MAX_RESULTS] = trace.n_in
    if isinstance(trace.detail, CutoffDetail):
        cut = trace.detail.cut
        if cut.cliff_after_rank is None and "gap_threshold" in strategy(cut.strategy).reads:
            largest = max((gap.size for gap in cut.gaps if not gap.skipped), default=0.0)
            found["cutoff.gap_threshold"] = f"the largest gap is {largest:.3f}"
    return found


SPEC: LayerSpec = LayerSpec(
    name="cutoff",
    title="Cutoff",
    mark=Mark("○", "circle-open", "#76849b", "#828083"),
    apply=apply,
    section=Cutoff,
    candidates=lambda settings: settings.cutoff.max_results,
    # What was learned with one reranker is refused with another.
    reads=(Quality,),
    off=lambda settings: f"off; the first {settings.retrieval.k} stay",
    line=_line,
    first=(
        "strategy",
        "gap_threshold",
        "distance_offset",
        "max_results",
        "skip_first",
        "jumps",
        "b_extra",
        "relative_offset",
        "target",
        "recall",
    ),
    unused=_unused,
    relax=lambda trace, result: ("Keep at least 2", {"cutoff.min_results": 2}),
    plain=_plain,
    unreached=_unreached,
    holds=MIN_RESULTS,
    line_height=2,
    limits=True,
    reads_pool=lambda settings: strategy(settings.cutoff.strategy).reads_pool,
)
