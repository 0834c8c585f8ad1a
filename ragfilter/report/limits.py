"""Which limit decided how many chunks are kept, and which ones had no effect. Pure.

Several limits shorten a list one after the other. Raising a limit changes nothing if another one
acts first. So every limit says whether it decided anything and, if not, which one was first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragfilter.judge.call import width
from ragfilter.layers.cutoff import acting, cut_hits, cut_of
from ragfilter.layers.diversity import Diversity
from ragfilter.layers.registry import layer
from ragfilter.model import CutoffDetail, JudgeDetail, LayerTrace, Result
from ragfilter.settings.schema import field
from ragfilter.text import numbers

EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: the setting at `path` and its value, a number or a choice. `dropped` is how many
    hits it left out, `held` how many it kept that others left out. If it did neither, `why` says
    what acted before it."""

    path: str
    value: float | str
    dropped: int
    why: str = ""
    held: int = 0

    @property
    def bound(self) -> bool:
        """Whether more or fewer hits would stay without it."""
        return self.dropped > 0 or self.held > 0

    @property
    def label(self) -> str:
        """``Candidates checked first = 15 (quality)``: the setting under its name on the page."""
        info = field(self.path)
        form = {float: ".3f", int: ",.0f"}.get(info.type, "")
        shown = f"{self.value:{form}}"
        where = f" ({info.section})" if info.section != "retrieval" else ""
        return f"{info.label} = {shown}{where}"

    @property
    def words(self) -> str:
        """``Candidates checked first = 15 (quality) drops 102``."""
        if self.held:
            return f"{self.label} keeps {numbers.count(self.held)} more"
        return f"{self.label} {f'drops {numbers.count(self.dropped)}' if self.bound else self.why}"


def limits(result: Result) -> tuple[Limit, ...]:
    """Every active limit, in the order in which they act."""
    found: list[Limit] = []
    for trace in result.traces:
        if trace.enabled and trace.n_in:
            found += _of(trace, result, found)
    return tuple(found)


def _of(trace: LayerTrace, result: Result, before: list[Limit]) -> Iterator[Limit]:
    match trace.layer:
        case "quality":
            yield from _quality(trace, result)
        case "cutoff":
            yield from _cutoff(trace, result, before)
        case "top_k":
            yield _count("retrieval.k", trace, result, before)
        case "diversity":
            yield from _diversity(trace, result)
        case "judge":
            yield from _judge(trace, result, before)
        case "context":
            path = "context.max_context_tokens"
            dropped = trace.count("dropped")
            yield Limit(path, result.settings.get(path), dropped, "is met by all")


def _count(path: str, trace: LayerTrace, result: Result, before: list[Limit]) -> Limit:
    """A limit on how many hits may come in."""
    k = int(result.settings.get(path))
    return Limit(path, k, max(0, trace.n_in - k), _forestalled(trace.n_in, before))


def _forestalled(n: int, before: list[Limit]) -> str:
    """Why a limit was not reached: the latest limit before it that dropped any."""
    came = f"is not reached: {numbers.chunks(n)} came in"
    last = next((limit for limit in reversed(before) if limit.dropped), None)
    if last is None:
        return came
    return f"{came}, limited by {last.label}"


def _quality(trace: LayerTrace, result: Result) -> Iterator[Limit]:
    quality = result.settings.quality
    drops = [d for d in trace.decisions if d.outcome == "dropped"]
    # A reason may begin with a place, so look for these words anywhere in it.
    beyond = [d for d in drops if "beyond the" in d.reason]
    placed = [d for d in drops if "after reranking" in d.reason]
    poor = len(drops) - len(beyond) - len(placed)
    reranked = trace.note.startswith("reranked")
    compared = {d.limit for d in trace.decisions}
    # Without enough hits for a background, similarity decides, whatever the setting says.
    by_share = quality.good_by == "background" and quality.score_threshold not in compared
    good = "background_share" if by_share else "score_threshold"
    threshold = "reranker_threshold" if reranked else good
    looked = len(trace.decisions) - trace.count("pinned") - len(beyond)
    width = "min_top_k" if looked <= quality.min_top_k and not reranked else "max_top_k"
    yield Limit(
        f"quality.{width}",
        getattr(quality, width),
        len(beyond),
        f"is not reached: {numbers.chunks(looked)} came in",
    )
    yield Limit(
        f"quality.{threshold}", getattr(quality, threshold), poor, "is met by all those checked"
    )
    if reranked:
        yield Limit("quality.reranker_top_k", quality.reranker_top_k, len(placed), "is not reached")


def _cutoff(trace: LayerTrace, result: Result, before: list[Limit]) -> Iterator[Limit]:
    settings, detail = result.settings.cutoff, trace.detail
    if not isinstance(detail, CutoffDetail):
        return
    cut = detail.cut
    beyond = max(0, trace.n_in - max(settings.max_results, trace.count("pinned")))
    fell = trace.n_in - trace.n_out - beyond
    used = layer("cutoff").used(acting(result))
    reason = f"is not reached: {numbers.chunks(trace.n_out)} stay"
    if trace.n_in <= settings.max_results:
        reason = _forestalled(trace.n_in, before)
    yield Limit("cutoff.max_results", settings.max_results, beyond, reason)
    cliff = cut.cliff_after_rank is not None
    if "gap_threshold" in used:
        largest = max((g.size for g in cut.gaps if not g.skipped), default=0.0)
        yield Limit(
            "cutoff.gap_threshold",
            settings.gap_threshold,
            fell if cliff else 0,
            "drops none" if cliff else f"is not reached: the largest gap is {largest:.3f}",
        )
    if "distance_offset" in used:
        yield Limit(
            "cutoff.distance_offset",
            settings.distance_offset,
            0 if cliff else fell,
            "does not act: there is a cliff" if cliff else "is met by all",
        )
    elif "gap_threshold" not in used and cut.strategy != "fixed":
        name = "relative_offset" if "relative_offset" in used else "strategy"
        value = cut.strategy if name == "strategy" else settings.relative_offset
        yield Limit(f"cutoff.{name}", value, fell, "is met by all")
    if cut.raised:
        free = acting(result).cutoff.model_copy(update={"min_results": 0})
        pins = trace.count("pinned")
        wish = cut_hits(detail.values, free, pinned=pins, background=detail.background)
        least = settings.min_results
        yield Limit("cutoff.min_results", least, 0, "is met by all", held=cut.kept - wish.kept)


def _diversity(trace: LayerTrace, result: Result) -> Iterator[Limit]:
    diversity = result.settings.section(Diversity)
    drops = [d for d in trace.decisions if d.outcome == "dropped"]
    alike = sum(d.reason.startswith("text similarity") for d in drops)
    yield Limit("diversity.max_similarity", diversity.max_similarity, alike, "is met by all")
    yield Limit("diversity.per_part", diversity.per_part, len(drops) - alike, "is met by all")


def _judge(trace: LayerTrace, result: Result, before: list[Limit]) -> Iterator[Limit]:
    """Before the judge is asked, `max_chunks` decides how many stay; afterwards it only decides
    which chunks are judged."""
    judge = result.settings.judge
    detail = trace.detail
    judgement = detail.judgement if isinstance(detail, JudgeDetail) else None
    drops = [d for d in trace.decisions if d.outcome == "dropped"]
    poor = sum("not shown to the judge" in d.reason for d in drops)
    relevance = Limit("judge.min_relevance", judge.min_relevance, poor, "is met by all")
    if judgement is None or judgement.error or not judgement.verdicts:
        yield relevance
        came = _forestalled(trace.n_in - poor, [*before, relevance])
        yield Limit("judge.max_chunks", judge.max_chunks, len(drops) - poor, came)
        return
    beyond = sum("that are judged" in d.reason for d in drops)
    came = _forestalled(trace.n_in, before) if trace.n_in <= width(judge) else "drops none"
    yield Limit("judge.oversample", judge.oversample, beyond, came)
    yield relevance
    full = sum(d.chunk_id in judgement.left_out for d in drops)
    yield Limit("judge.max_prompt_tokens", judge.max_prompt_tokens, full, "is met by all")


def first_step(result: Result) -> float | None:
    """The size of the first step, if it is the tallest and would be the cliff if it were not
    skipped."""
    detail = cut_of(result)
    cutoff = result.settings.cutoff
    if detail is None or not cutoff.skip_first or detail.cut.strategy != "gap":
        return None
    first, *others = detail.cut.gaps or (None,)
    if first is None or not first.skipped or first.size < cutoff.gap_threshold - EPSILON:
        return None
    tallest = all(first.size > gap.size + EPSILON for gap in others if gap is not None)
    return first.size if tallest else None
