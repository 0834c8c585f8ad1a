"""What the judge did with a result: its figures, and its verdict on every chunk. Pure.

Source: Intelligent Chunk Filtering, "Metrics to Track"; docs/design.md#judge. Hidden chunks are not
named.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ragfilter.judge import call
from ragfilter.judge.call import JudgeStats
from ragfilter.model import Brought, JudgeDetail, Outcome, PoolResult
from ragfilter.report.rows import seen, visible


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A chunk that reached the judge, or that an expansion brought in.

    `said` is ``KEEP``, ``DISCARD``, ``EXPAND_n``, or empty without a verdict. `by` is the expansion
    that brought it in (None if there is none), `brought` are the ids that its own expansion brought
    in.
    """

    id: str
    title: str
    said: str
    outcome: Outcome
    reason: str
    by: Brought | None = None
    brought: tuple[str, ...] = ()


def waits_for_judge(result: PoolResult) -> bool:
    """Whether the judge is on and has not been asked about these chunks yet."""
    return any(need.kind == "judge" for need in result.needs)


def judge_stats(result: PoolResult) -> JudgeStats | None:
    """The judge's figures; None if it is off, had nothing to judge, or has not been asked yet."""
    trace = result.trace("judge")
    if not trace.enabled or not trace.n_in or waits_for_judge(result):
        return None
    if result.judgement is None and not trace.count("fallback"):
        return None
    return call.stats(trace, result.judgement)


def judge_document(result: PoolResult) -> dict[str, Any] | None:
    """The value of ``judge`` in `query --json`: None if `judge_stats` is.

    ``decisions`` are the judge's words by chunk id; ``remarks`` are parts of its answer that were
    not obeyed.
    """
    stats = judge_stats(result)
    if stats is None:
        return None
    named = visible(result)
    return asdict(stats) | {
        "reduction": round(stats.reduction, 4),
        "ms": round(stats.ms, 3),
        "decisions": {i: said for i, said in _said(result).items() if i in named},
        "remarks": list(remarks(result)),
    }


def remarks(result: PoolResult) -> tuple[str, ...]:
    """The parts of the judge's answer that were not obeyed. They name only chunks that it was asked
    about, none of which is hidden from the user."""
    return result.judgement.remarks if result.judgement is not None else ()


def verdict_rows(result: PoolResult, *, as_operator: bool = False) -> tuple[VerdictRow, ...]:
    """Verdict and outcome of every chunk, kept ones first; empty if the judge is off."""
    # Reasons contain ranks, which would reveal hidden chunks before them.
    result = seen(result, as_operator=as_operator)
    trace = result.trace("judge")
    if not trace.enabled:
        return ()
    said = _said(result)
    hits = {hit.id: hit for hit in result.hits}
    named = visible(result, as_operator=as_operator)
    detail = trace.detail.brought if isinstance(trace.detail, JudgeDetail) else ()
    by = {step.chunk_id: step for step in detail}
    rows = [
        VerdictRow(
            id=decision.chunk_id,
            title=hits[decision.chunk_id].chunk.name,
            said=said.get(decision.chunk_id, ""),
            outcome=decision.outcome,
            reason=decision.reason,
            by=by.get(decision.chunk_id),
            brought=tuple(s.chunk_id for s in detail if s.root == decision.chunk_id),
        )
        for decision in trace.decisions
        if decision.chunk_id in named
    ]
    return tuple(sorted(rows, key=lambda row: row.outcome == "dropped"))


def _said(result: PoolResult) -> dict[str, str]:
    verdicts = result.judgement.verdicts if result.judgement is not None else ()
    return {verdict.chunk_id: verdict.written for verdict in verdicts}
