"""The judge's effect on a result: its figures, and its verdict on every chunk; no hidden chunk is named. Pure, except
that a forecast reads the cache. Source: Intelligent Chunk Filtering, "Metrics to Track"; docs/design.md#judge."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ragfilter.engine.replay import replay_as_user
from ragfilter.judge.call import JudgementCache
from ragfilter.judge.prompt import JudgePrompt
from ragfilter.layers.judge import prompt_for_user
from ragfilter.model import ExpandedChunk, JudgeDetail, Judgement, Outcome, PoolResult
from ragfilter.protocols import Usage
from ragfilter.results.rows import visible_ids
from ragfilter.text.shared_words import estimate_tokens

if TYPE_CHECKING:
    from ragfilter.protocols import Prices


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A chunk that reached the judge, or that an expansion (`by`) brought in. `said` is ``KEEP``, ``DISCARD``,
    ``EXPAND_n``, or empty without a verdict. `brought` are the ids that its own expansion brought in."""

    id: str
    title: str
    said: str
    outcome: Outcome
    reason: str
    by: ExpandedChunk | None = None
    brought: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeStats:
    """The effect of judging: `kept` of `original` candidates stay, and `expanded` more were brought in. `reduction` is
    the share of candidates that was dropped, 0..1 (0 without any). `cached`: the model was not called; tokens and
    milliseconds describe the original call."""

    original: int
    kept: int
    expanded: int
    reduction: float
    fallback: bool
    ms: float
    prompt_tokens: int
    completion_tokens: int
    error: str = ""
    cached: bool = False
    model: str = ""
    prompt_version: str = ""
    left_out: int = 0
    remarks: int = 0
    shortened: int = 0


def waits_for_judge(result: PoolResult) -> bool:
    """Whether the judge is on, but has not been called for these chunks yet."""
    return any(need.kind == "judge" for need in result.needs)


def judge_stats(result: PoolResult) -> JudgeStats | None:
    """The judge's figures; None if it is off, had nothing to judge, or was not called yet."""
    trace = result.trace("judge")
    if not trace.enabled or not trace.n_in or waits_for_judge(result):
        return None
    if result.judgement is None and not trace.count("fallback"):
        return None
    judgement = result.judgement or Judgement(())
    outcomes = [decision.outcome for decision in trace.decisions]
    expanded = outcomes.count("expanded")
    kept = trace.n_out - expanded
    original = len(judgement.asked) + len(judgement.left_out) or trace.n_in
    fallback = "fallback" in outcomes
    return JudgeStats(
        original=original,
        kept=kept,
        expanded=expanded,
        reduction=1 - kept / original if original else 0.0,
        fallback=fallback,
        ms=judgement.ms,
        prompt_tokens=judgement.prompt_tokens,
        completion_tokens=judgement.completion_tokens,
        error=judgement.error or (trace.note if fallback else ""),
        cached=judgement.cached,
        model=judgement.model,
        prompt_version=judgement.prompt_version,
        left_out=len(judgement.left_out),
        remarks=len(judgement.remarks),
        shortened=len(judgement.shortened),
    )


def judge_document(result: PoolResult) -> dict[str, Any] | None:
    """The value of ``judge`` in `query --json`: None if `judge_stats` is.

    ``decisions`` has the judge's words by chunk id; ``remarks`` has the parts of its answer that were ignored."""
    stats = judge_stats(result)
    if stats is None:
        return None
    visible = visible_ids(result)
    return asdict(stats) | {
        "reduction": round(stats.reduction, 4),
        "ms": round(stats.ms, 3),
        "decisions": {i: verdict for i, verdict in _verdicts(result).items() if i in visible},
        "remarks": list(remarks(result)),
    }


def remarks(result: PoolResult) -> tuple[str, ...]:
    """The parts of the judge's answer that were ignored. They name only chunks from its prompt,
    none of which is hidden from the user."""
    return result.judgement.remarks if result.judgement is not None else ()


def verdict_rows(result: PoolResult, *, as_operator: bool = False) -> tuple[VerdictRow, ...]:
    """Verdict and outcome of every chunk, kept ones first; empty if the judge is off."""
    # Reasons contain ranks, which would reveal that hidden chunks come before.
    result = result if as_operator else replay_as_user(result)
    trace = result.trace("judge")
    if not trace.enabled:
        return ()
    verdicts = _verdicts(result)
    hits = {hit.id: hit for hit in result.hits}
    visible = visible_ids(result, as_operator=as_operator)
    detail = trace.detail.brought if isinstance(trace.detail, JudgeDetail) else ()
    by = {step.chunk_id: step for step in detail}
    rows = [
        VerdictRow(
            id=decision.chunk_id,
            title=hits[decision.chunk_id].chunk.name,
            said=verdicts.get(decision.chunk_id, ""),
            outcome=decision.outcome,
            reason=decision.reason,
            by=by.get(decision.chunk_id),
            brought=tuple(s.chunk_id for s in detail if s.root == decision.chunk_id),
        )
        for decision in trace.decisions
        if decision.chunk_id in visible
    ]
    return tuple(sorted(rows, key=lambda row: row.outcome == "dropped"))


def _verdicts(result: PoolResult) -> dict[str, str]:
    verdicts = result.judgement.verdicts if result.judgement is not None else ()
    return {verdict.chunk_id: verdict.written for verdict in verdicts}


@dataclass(frozen=True, slots=True)
class Forecast:
    """The forecast cost of a call of the judge. `asked` chunks go into the prompt, `shortened` of them cut; `left_out`
    do not fit. Tokens are estimates; `cost` is in `currency`, None without prices. The call takes at most `at_most_ms`,
    usually `usual_ms` (None if the model has not been called yet). `remembered`: the answer is cached, so it costs
    nothing and takes no time."""

    asked: int
    left_out: int
    prompt_version: str
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    at_most_ms: int
    usual_ms: float | None = None
    remembered: bool = False
    shortened: int = 0
    currency: str = ""


def forecast(
    result: PoolResult, *, model: str = "", judgements: JudgementCache | None = None, prices: Prices | None = None
) -> Forecast | None:
    """The forecast of the judge's call that `result` needs; None if it needs none. Pure, except
    that it reads what `judgements` has cached for `model`."""
    if not waits_for_judge(result):
        return None
    prompt = judge_prompt(result)
    assert prompt is not None
    answer = [{"chunk_id": i, "action": "EXPAND_3"} for i in prompt.asked]
    sent, written = prompt.tokens, estimate_tokens(json.dumps({"decisions": answer}))
    remembered, usual = False, None
    if judgements is not None:
        remembered, usual = (model, prompt.key) in judgements, judgements.usual_ms(model)
    return Forecast(
        asked=len(prompt.asked),
        left_out=len(prompt.left_out),
        prompt_version=prompt.version,
        prompt_tokens=sent,
        completion_tokens=written,
        cost=None if prices is None else prices.of(Usage(sent, written)),
        at_most_ms=result.settings.judge.timeout_ms,
        usual_ms=usual,
        remembered=remembered,
        shortened=len(prompt.shortened),
        currency="" if prices is None else prices.currency,
    )


def judge_prompt(result: PoolResult) -> JudgePrompt | None:
    """The judge's prompt for the user of `result`, whether already sent or not; None if the judge
    is off or had nothing to judge."""
    need = next((need for need in result.needs if need.kind == "judge"), None)
    if need is not None:
        ids = need.chunk_ids
    else:
        judgement = result.judgement
        ids = judgement.asked + judgement.left_out if judgement is not None else ()
    by_id = {hit.id: hit for hit in result.pool.hits}
    if not ids or not by_id.keys() >= set(ids):
        return None
    return prompt_for_user([by_id[i] for i in ids], result.pool, result.settings, result.user)
