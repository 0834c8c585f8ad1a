"""judge: an LLM decides for each chunk whether to keep, discard, or expand it along its references.

Source: Intelligent Chunk Filtering; docs/design.md#judge. Pure: the verdicts are in the pool. If
there are none for exactly this prompt, the nearest chunks are kept and a `Need` is returned.

Pinned chunks are kept whatever the verdict, but they are judged, since they may be expanded. Kept chunks come first, in
order, followed by the chunks that they brought in: a deep expansion must not push a kept chunk out of the context.
Expansion can bring in chunks that earlier layers dropped. It never adds or passes through a hidden chunk, one that the
judge discarded by name, or (with query_must on) one whose rule fails. Every chunk visited counts toward
`max_expansion`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ragfilter.judge.call import NO_DECISION
from ragfilter.judge.prompt import JudgePrompt, build_prompt, no_room
from ragfilter.layers.layer import EPSILON, LayerInput, LayerOutput, LayerSpec, Mark, place_words
from ragfilter.layers.references import clean_finder, walk
from ragfilter.layers.visibility import effective_user, without_hidden_refs
from ragfilter.model import (
    Decision,
    ExpandedChunk,
    Hit,
    JudgeDetail,
    Judgement,
    LayerTrace,
    Need,
    Outcome,
    Pool,
    PoolResult,
    Space,
    User,
    Verdict,
    similarity,
    with_chunks,
)
from ragfilter.settings.schema import Judge, Settings
from ragfilter.text import numbers

OVERSAMPLE_PATH, RELEVANCE_PATH = "judge.oversample", "judge.min_relevance"
MAX_CHUNKS_PATH = "judge.max_chunks"


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Obey the judgement in the pool. Status `low_quality_results` if it keeps nothing."""
    if not hits:
        return LayerOutput(())
    settings = inputs.settings.judge
    candidate_hits = candidates(hits, settings, inputs.pool.space, inputs.pinned)
    unasked = _unasked(hits, candidate_hits, inputs)
    if not candidate_hits:
        message = f"No chunk reaches the judge's minimum similarity of {settings.min_relevance:g}. "
        message += "Rephrase the question, or lower the minimum."
        return LayerOutput((), unasked, status="low_quality_results", message=message)
    prompt = prompt_for_user(candidate_hits, inputs.pool, inputs.settings, inputs.user)
    if not prompt.asked:
        return _nearest(candidate_hits, unasked, inputs, error=no_room(settings))
    judgement = _judgement_of(prompt, inputs.pool.judgements)
    if judgement is None:
        output = _nearest(candidate_hits, unasked, inputs)
        wait = "chunk waits" if len(prompt.asked) == 1 else "chunks wait"
        why = f"{len(prompt.asked)} {wait} for the LLM's verdict"
        return replace(output, needs=(Need("judge", "judge", tuple(hit.id for hit in candidate_hits), why),))
    if judgement.error or not judgement.verdicts:
        output = _nearest(candidate_hits, unasked, inputs, error=judgement.error or NO_DECISION)
        return replace(output, detail=JudgeDetail(judgement))
    return _obey(candidate_hits, unasked, judgement, inputs)


def width(settings: Judge) -> int:
    """The number of hits considered: int(max_chunks × oversample)."""
    return int(settings.max_chunks * settings.oversample + EPSILON)


def candidates(
    hits: Sequence[Hit], settings: Judge, space: Space, pinned: Collection[str] = frozenset()
) -> tuple[Hit, ...]:
    """Those of the first `width` hits that are pinned or have a similarity ≥ `min_relevance` or an unknown one."""
    first = tuple(hits[: width(settings)])
    if space == "rank":
        return first
    least = settings.min_relevance - EPSILON
    return tuple(h for h in first if h.id in pinned or similarity(h.distance, space) >= least)


def settings_without_judge(settings: Settings) -> Settings:
    """Switch the judge off. If no other layer limits the result, the first `max_chunks` stay, as without an LLM."""
    if not settings.judge.enabled:
        return settings
    return settings.with_values({"judge.enabled": False, "retrieval.k": settings.judge.max_chunks})


def prompt_for_user(asked: Sequence[Hit], pool: Pool, settings: Settings, user: User | None = None) -> JudgePrompt:
    """The prompt about `asked` for this user, without references to chunks hidden from them."""
    shown = with_chunks(asked, without_hidden_refs(pool, effective_user(user, settings)))
    return build_prompt(pool.query, shown, settings.judge, pool.space)


def _judgement_of(prompt: JudgePrompt, judgements: Sequence[Judgement]) -> Judgement | None:
    """The judgement of exactly this prompt, since the same chunks can have other texts or references for another budget
    or user. A judgement without a prompt matches by its chunks."""
    key = prompt.key if judgements else ""
    for judgement in judgements:
        if judgement.prompt_key == key:
            return prompt.adopt(judgement)
    meant = prompt.asked + prompt.left_out
    return next((j for j in judgements if not j.prompt_key and j.asked + j.left_out == meant), None)


def _unasked(hits: Sequence[Hit], asked: Sequence[Hit], inputs: LayerInput) -> tuple[Decision, ...]:
    settings = inputs.settings.judge
    most = width(settings)
    ids = {hit.id for hit in asked}
    decisions = []
    for place, hit in enumerate(hits, start=1):
        if hit.id in ids:
            continue
        if place > most:
            reason = f"{place_words(place, hit)}beyond the first {most} that are judged"
            decisions.append(Decision(hit.id, "judge", "dropped", reason, float(place), float(most), OVERSAMPLE_PATH))
        else:
            value, limit = inputs.similarity(hit), settings.min_relevance
            reason = f"similarity {numbers.apart(value, '<', limit)}, not shown to the judge"
            decisions.append(Decision(hit.id, "judge", "dropped", reason, value, limit, RELEVANCE_PATH))
    return tuple(decisions)


def _nearest(
    asked: tuple[Hit, ...], unasked: tuple[Decision, ...], inputs: LayerInput, *, error: str = ""
) -> LayerOutput:
    """Keep the first `max_chunks` by distance, pins first, after an `error` or before the judge is asked."""
    limit = inputs.settings.judge.max_chunks
    ordered = sorted(asked, key=lambda h: (h.id not in inputs.pinned, h.distance))
    kept = ordered[: max(limit, sum(hit.id in inputs.pinned for hit in asked))]
    decisions = []
    for place, hit in enumerate(ordered, start=1):
        stays = place <= len(kept)
        why = inputs.pinned.get(hit.id) or f"{'among' if stays else 'beyond'} the nearest {limit}"
        reason = f"{why}; the judge failed" if error else f"not judged yet, {why}"
        outcome: Outcome = "dropped" if not stays else "fallback" if error else "kept"
        decisions.append(Decision(hit.id, "judge", outcome, reason, float(place), float(limit), MAX_CHUNKS_PATH))
    # At most `limit` stay, however many the judge would be asked about.
    unasked = tuple(d._replace(setting=MAX_CHUNKS_PATH) if d.setting == OVERSAMPLE_PATH else d for d in unasked)
    before = "judged with other chunks or another prompt, so " if inputs.pool.judgements else ""
    note = f"{before}not judged yet; for now, keeping the {len(kept)} nearest"
    if error:
        note = f"the judge failed ({error}); keeping the {len(kept)} nearest instead"
    return LayerOutput(tuple(kept), (*decisions, *unasked), note=note, failed=bool(error))


def _obey(
    asked: tuple[Hit, ...], unasked: tuple[Decision, ...], judgement: Judgement, inputs: LayerInput
) -> LayerOutput:
    verdicts = {verdict.chunk_id: verdict for verdict in judgement.verdicts}
    decisions = {h.id: _decision(h, verdicts.get(h.id), judgement, inputs) for h in asked}
    kept = [hit for hit in asked if decisions[hit.id].outcome != "dropped"]
    discarded = frozenset(v.chunk_id for v in judgement.verdicts if v.action == "DISCARD")
    brought: dict[str, Hit] = {}
    steps: list[ExpandedChunk] = []
    kept_ids = {hit.id for hit in kept}
    known = {hit.id: hit for hit in (*inputs.pool.reachable, *inputs.pool.hits)}
    # A hit may lack the text that the same chunk in `reachable` has.
    chunks = {hit.id: hit.chunk for hit in (*inputs.pool.reachable, *inputs.pool.hits) if hit.chunk.loaded}
    find = clean_finder(chunks.get, inputs.settings, inputs.scan, inputs.user, discarded)
    most = inputs.settings.judge.max_expansion
    for root in kept:
        verdict = verdicts.get(root.id)
        if verdict is None or verdict.action != "EXPAND":
            continue
        for reached in walk(root.chunk, depth=verdict.depth, most=most, find=find):
            if reached.chunk.id in kept_ids:
                continue
            hit = replace(known[reached.chunk.id], chunk=reached.chunk)
            kept_ids.add(hit.id)
            # A hit that a search found stays as it is.
            brought[hit.id] = hit if hit.rank else replace(hit, found_by=f"expansion:{root.id}")
            steps.append(ExpandedChunk(hit.id, root.id, reached.via, reached.step))
            reason = f"referenced by {root.chunk.name}, step {reached.step} of {verdict.depth}"
            decisions[hit.id] = Decision(hit.id, "judge", "expanded", reason, float(reached.step), float(verdict.depth))
    others = (decision for decision in unasked if decision.chunk_id not in brought)
    output = LayerOutput(
        (*kept, *brought.values()),
        (*decisions.values(), *others),
        detail=JudgeDetail(judgement, tuple(steps)),
        note=_note(judgement, len(kept), len(brought)),
    )
    message = f"The judge found none of the {len(judgement.asked)} chunks relevant. Rephrase the question."
    return output if kept else replace(output, status="low_quality_results", message=message)


def _decision(hit: Hit, verdict: Verdict | None, judgement: Judgement, inputs: LayerInput) -> Decision:
    if verdict is not None:
        reason = f"the judge said {verdict.written}"
    elif hit.id in judgement.left_out:
        budget = inputs.settings.judge.max_prompt_tokens
        reason = f"left out of the judge's prompt: its budget of {budget} tokens was full"
    elif hit.id in judgement.unreadable:
        reason = "the judge's decision could not be read"
    else:
        reason = "not named by the judge"
    if hit.id in judgement.shortened:
        reason = f"{reason} (its text shortened)"
    if hit.id in inputs.pinned:
        return Decision(hit.id, "judge", "pinned", f"{inputs.pinned[hit.id]}; {reason}")
    keeps = verdict is not None and verdict.action != "DISCARD"
    by = "judge.max_prompt_tokens" if hit.id in judgement.left_out else ""
    return Decision(hit.id, "judge", "kept" if keeps else "dropped", reason, setting=by)


def _note(judgement: Judgement, kept: int, brought: int) -> str:
    parts = [f"{judgement.model or 'the judge'} kept {kept} of {len(judgement.asked)}"]
    if brought:
        parts.append(f"references brought in {brought} more")
    if judgement.left_out:
        parts.append(f"{len(judgement.left_out)} did not fit into the prompt and were dropped")
    if judgement.shortened:
        parts.append(f"{len(judgement.shortened)} were shortened to fit")
    if judgement.remarks:
        parts.append(f"{numbers.counted(len(judgement.remarks), 'remark')} on its answer")
    return "; ".join(parts)


def _plain(decision: Decision, hit: Hit, result: PoolResult) -> str:
    judgement = result.judgement
    was_judged = judgement is not None and not judgement.error and hit.id in judgement.asked
    return "did not help, according to the LLM" if was_judged else "came too far down the list"


def _unreached(trace: LayerTrace, result: PoolResult) -> dict[str, int | str]:
    """Before the judge is asked, `max_chunks` decides how many stay; afterwards only which chunks are judged."""
    settings = result.settings.judge
    if isinstance(trace.detail, JudgeDetail) and not trace.failed:
        return {OVERSAMPLE_PATH: trace.n_in} if trace.n_in <= width(settings) else {}
    poor = sum(d.setting == RELEVANCE_PATH for d in trace.decisions)
    similar = f"of {trace.n_in} chunks, {trace.n_in - poor} are similar enough"
    return {MAX_CHUNKS_PATH: similar if poor else trace.n_in}


SPEC: LayerSpec = LayerSpec(
    name="judge",
    title="LLM judge",
    mark=Mark("◇", "diamond-open", "#c20154", "#ff7fa2"),
    apply=apply,
    candidates=lambda settings: width(settings.judge),
    off=lambda settings: "off; no LLM is asked",
    cost=lambda settings: "LLM call",
    first=("max_chunks", "min_relevance"),
    plain=_plain,
    unreached=_unreached,
    limits=True,
)
