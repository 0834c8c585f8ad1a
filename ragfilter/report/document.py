"""A result as the JSON document of `query --json`. Pure. Source: docs/design.md#json."""

from __future__ import annotations

from dataclasses import asdict
from math import isnan
from typing import Any

from ragfilter.answer.context import sent
from ragfilter.engine.replay import unfiltered
from ragfilter.model import CutoffDetail, Decision, PoolResult, Rounds, Widening
from ragfilter.report.rows import COLUMNS, rows, seen
from ragfilter.report.rows import references as refs_of
from ragfilter.report.summary import in_prompt, max_security_level
from ragfilter.report.verdicts import judge_document

LAYER = ("layer", "enabled", "n_in", "n_out", "ms", "note")
ROUND = ("retrieved", "excluded", "kept")


def document(result: PoolResult, *, references: bool = False) -> dict[str, Any]:
    """The plain values that `query --json` prints, ready for `json.dumps`. With `references`, every
    hit names the chunks it refers to in ``refs``. Kept hits have their ``text`` and ``metadata``;
    ``decisions`` has the decisions of every layer, in order. ``hidden``, the number of chunks that
    clearance dropped, is None, since the user must not know. A pruned hit also has its
    ``prompt_text``, and a hit of several searches its ``scores`` by name.

    ``success``, ``message``, ``count`` and ``max_security_level`` come from the Adaptive
    Retrieval System's return format; its context is ``kept``, its error ``status``.
    """
    highest = max_security_level(result)
    result = seen(result)
    plain = unfiltered(result.pool, result.settings, result.user)
    rounds, widths = result.trace("query_must").detail, result.trace("quality").detail
    return {
        "query": result.query,
        "collection": result.pool.collection,
        "space": result.pool.space,
        "status": result.status,
        "success": result.status == "ok",
        "message": result.message,
        "incomplete": result.pool.incomplete,
        "max_security_level": highest,
        "count": len(result.kept),
        "kept": [hit.id for hit in result.kept],
        "hits": _hits(result, references),
        "layers": [
            {name: getattr(each, name) for name in LAYER} | {"ms": round(each.ms, 3)}
            for each in result.traces
        ],
        "cutoff": _cutoff_document(result),
        "rounds": [
            {"round": each.number} | {name: len(getattr(each, name)) for name in ROUND}
            for each in (rounds.rounds if isinstance(rounds, Rounds) else ())
        ],
        "widening": [asdict(tried) for tried in widths.widths]
        if isinstance(widths, Widening)
        else [],
        "decisions": [_decision(each) for trace in result.traces for each in trace.decisions],
        "judge": judge_document(result),
        "context_tokens": in_prompt(result.kept, result.settings)[1],
        "unfiltered": [hit.id for hit in plain],
        "unfiltered_tokens": in_prompt(plain, result.settings)[1],
        "retrieved": result.retrieved,
        "hidden": None,
        "entities": [e.name for e in result.pool.entities]
        if result.settings.entities.enabled
        else [],
        "needs": [
            {"kind": need.kind, "layer": need.layer, "chunks": len(need.chunk_ids), "why": need.why}
            for need in result.needs
        ],
        "gather_ms": round(result.pool.gather_ms, 3),
        "store_queries": result.pool.queries,
    }


def _hits(result: PoolResult, references: bool) -> list[dict[str, Any]]:
    kept = {hit.id: hit.chunk for hit in result.kept}
    struck = {hit.id: {"prompt_text": sent(hit)} for hit in result.kept if hit.struck}
    scores = {
        hit.id: {"scores": {name: score._asdict() for name, score in hit.scores.items()}}
        for hit in result.hits
        if hit.scores
    }
    documents: list[dict[str, Any]] = []
    for row in rows(result):
        chunk = kept.get(row.id)
        more = {} if chunk is None else {"text": chunk.text, "metadata": dict(chunk.metadata)}
        own = dict(zip(COLUMNS, row[:-1], strict=True))
        documents.append(own | more | struck.get(row.id, {}) | scores.get(row.id, {}))
    if references:
        refs = refs_of(result)
        for document in documents:
            document["refs"] = list(refs[document["id"]])
    return documents


def _decision(decision: Decision) -> dict[str, Any]:
    value = decision.value
    # If the store gives no distances, a similarity is NaN.
    return decision._asdict() | {"value": None if value is None or isnan(value) else value}


def _cutoff_document(result: PoolResult) -> dict[str, Any] | None:
    detail = result.trace("cutoff").detail
    if not isinstance(detail, CutoffDetail):
        return None
    cut, names = detail.cut, ("strategy", "cliff_after_rank", "gap", "limit", "kept", "reason")
    sizes = [gap.size for gap in cut.gaps]
    return {name: getattr(cut, name) for name in names} | {
        "values": detail.value_name, "gaps": sizes,
    }  # fmt: skip
