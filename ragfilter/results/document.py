"""A result as the JSON document of `query --json`, and as the debug trace. Pure.

Source: docs/design.md#json. For the trace: Adaptive Filtering Algorithm, "Debugging" (hits, gaps, thresholds, cut);
Adaptive Result Filtering, "Debug Mode" (strategy, constraints, dropped hits; four decimals, so that gaps can be checked
by hand); Filtering, layer 3 (rounds: requested, excluded, kept)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

from ragfilter.answer.context_packing import prompt_text
from ragfilter.engine.pool import unfiltered
from ragfilter.engine.replay import replay_as_user
from ragfilter.errors import InputError
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies.strategy import strategy
from ragfilter.model import Cut, CutoffDetail, Decision, LayerTrace, PoolResult, Rounds, Widening
from ragfilter.results.rows import COLUMNS, ChunkRow, kept_first, rows
from ragfilter.results.rows import references as refs_of
from ragfilter.results.summary import layer_line, max_security_level, prompt_size, tokens_of
from ragfilter.results.verdicts import judge_document
from ragfilter.text import numbers

LAYER = ("layer", "enabled", "n_in", "n_out", "ms", "note")
ROUND = ("retrieved", "excluded", "kept")


def document(result: PoolResult, *, references: bool = False) -> dict[str, Any]:
    """The plain values that `query --json` prints, ready for `json.dumps`. With `references`, every hit has the chunks
    that it refers to in ``refs``. Kept hits have ``text`` and ``metadata``; ``decisions`` has the decisions of every
    layer, in order. ``hidden``, the number of chunks that clearance dropped, is None, since the user must not know it.
    A pruned hit also has its ``prompt_text``, and a hit from several searches its ``scores`` by name.

    ``success``, ``message``, ``count`` and ``max_security_level`` come from the Adaptive Retrieval System's return
    format; ``kept`` is its context, and ``status`` its error."""
    highest = max_security_level(result)
    result = replay_as_user(result)
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
        "layers": [{name: getattr(each, name) for name in LAYER} | {"ms": round(each.ms, 3)} for each in result.traces],
        "cutoff": _cutoff_document(result),
        "rounds": [
            {"round": each.number} | {name: len(getattr(each, name)) for name in ROUND}
            for each in (rounds.rounds if isinstance(rounds, Rounds) else ())
        ],
        "widening": [asdict(tried) for tried in widths.widths] if isinstance(widths, Widening) else [],
        "decisions": [_decision(each) for trace in result.traces for each in trace.decisions],
        "judge": judge_document(result),
        "context_tokens": prompt_size(result.kept, result.settings)[1],
        "unfiltered": [hit.id for hit in plain],
        "unfiltered_tokens": prompt_size(plain, result.settings)[1],
        "retrieved": result.retrieved,
        "hidden": None,
        "entities": [e.name for e in result.pool.entities] if result.settings.entities.enabled else [],
        "needs": [
            {"kind": need.kind, "layer": need.layer, "chunks": len(need.chunk_ids), "why": need.why}
            for need in result.needs
        ],
        "gather_ms": round(result.pool.gather_ms, 3),
        "store_queries": result.pool.queries,
    }


def _hits(result: PoolResult, references: bool) -> list[dict[str, Any]]:
    kept = {hit.id: hit.chunk for hit in result.kept}
    struck = {hit.id: {"prompt_text": prompt_text(hit)} for hit in result.kept if hit.struck}
    scores = {
        hit.id: {"scores": {name: score._asdict() for name, score in hit.scores.items()}}
        for hit in result.hits
        if hit.scores
    }
    documents: list[dict[str, Any]] = []
    for row in rows(result):
        chunk = kept.get(row.id)
        more = {} if chunk is None else {"text": chunk.text, "metadata": dict(chunk.metadata)}
        columns = dict(zip(COLUMNS, row[:-1], strict=True))
        documents.append(columns | more | struck.get(row.id, {}) | scores.get(row.id, {}))
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
    return {name: getattr(cut, name) for name in names} | {"values": detail.value_name, "gaps": sizes}


MAX_HITS = 30
"""Maximum number of hits listed as found, and per list of decisions."""


def trace_text(result: PoolResult) -> str:
    """The whole trace."""
    result = replay_as_user(result)
    listed = rows(result)
    names = {row.id: f"{' '.join(row.title.split())} [{row.id}]" for row in listed}
    lines = [*_head(result), "", *_found(listed)]
    for trace in result.traces:
        lines += ["", *_layer(trace, result, names)]
    lines += ["", *_final(result, listed)]
    return "\n".join(lines) + "\n"


def _head(result: PoolResult) -> Iterator[str]:
    pool, settings = result.pool, result.settings
    space = "squared l2" if pool.space == "l2" else pool.space
    yield f"Query: {result.query}"
    yield (
        f"Collection: {pool.collection} (distance: {space}), "
        f"store queries: {pool.queries}, {numbers.ms(pool.gather_ms)}"
    )
    yield f"Settings: k unfiltered {settings.retrieval.k}, pool {settings.retrieval.pool_size}"
    if not result.user.unrestricted:
        departments = ", ".join(result.user.departments) or "none"
        yield f"  clearance: level {result.user.level}, department {departments}"
    for trace in result.traces:
        names = layer(trace.layer).used(settings)
        if trace.enabled and names:
            pairs = [(name, settings.get(f"{trace.layer}.{name}")) for name in names]
            values = [f"{n} {v:g}" if isinstance(v, float) else f"{n} {v}" for n, v in pairs if v != ""]
            yield f"  {trace.layer}: {', '.join(values)}"
    off = [trace.layer for trace in result.traces if not trace.enabled]
    if off:
        yield f"  off: {', '.join(off)}"
    if settings.entities.enabled and pool.entities:
        yield f"Comparison of: {', '.join(entity.name for entity in pool.entities)}"


def _found(listed: Sequence[ChunkRow]) -> Iterator[str]:
    ranked = [row for row in listed if row.rank > 0]
    yield f"Found: {len(ranked)} hits, by distance"
    for row in ranked[:MAX_HITS]:
        gap = "" if row.gap is None else f"  gap {row.gap:+.4f}"
        page = "" if row.page is None else f"  page {row.page}"
        score = "" if row.rerank_score is None else f"  rerank {numbers.distance(row.rerank_score)}"
        by = "" if row.found_by == "query" else f"  found by {row.found_by}"
        yield f"{row.rank:5d}. {row.distance:.4f}{gap}{score}  {row.title} [{row.id}]{page}{by}"
    if len(ranked) > MAX_HITS:
        yield f"       … and {len(ranked) - MAX_HITS} more"


def _layer(trace: LayerTrace, result: PoolResult, names: dict[str, str]) -> Iterator[str]:
    title = f"Layer {trace.layer}"
    if not trace.enabled:
        yield f"{title}: off"
        return
    yield f"{title}: {trace.n_in} in, {trace.n_out} out, {numbers.ms(trace.ms)}"
    yield f"  {layer_line(trace, result)}"
    if isinstance(trace.detail, Rounds):
        yield from _rounds(trace.detail, names)
    if isinstance(trace.detail, Widening):
        yield from _widening(trace.detail)
    if isinstance(trace.detail, CutoffDetail):
        yield from _cutoff(trace.detail, result)
    decisions = [d for d in trace.decisions if d.chunk_id in names]
    if trace.layer == "entities":
        decisions = [d for d in decisions if d.outcome != "kept"]
    for decision in decisions[:MAX_HITS]:
        yield f"  {decision.outcome:8s} {names[decision.chunk_id]}: {decision.reason}"
    counts = Counter(d.outcome for d in decisions[MAX_HITS:])
    if counts:
        rest = ", ".join(f"{n} {outcome}" for outcome, n in counts.items())
        yield f"  … and {rest}"


def _rounds(detail: Rounds, names: dict[str, str]) -> Iterator[str]:
    yield f"  asking again, k {detail.k}:"
    for r in detail.rounds:
        yield (f"    round {r.number}: {len(r.retrieved)} retrieved, {len(r.excluded)} excluded, {len(r.kept)} kept")
        for mark, ids in (("keep", r.kept), ("exclude", r.excluded)):
            for i in ids:
                if i in names:
                    yield f"      {mark:7s} {names[i]}"
    yield f"    {numbers.chunk_count(len(detail.kept))} after {len(detail.rounds)} rounds"
    if detail.short:
        yield f"    {detail.short} short of what the wide pool holds"


def _widening(detail: Widening) -> Iterator[str]:
    for tried in detail.widths:
        sign = "≥" if tried.good else "<"
        yield (
            f"  first {tried.width}: {tried.good} good, best similarity {tried.best:.4f} {sign} {detail.threshold:.4f}"
        )


def _cutoff(detail: CutoffDetail, result: PoolResult) -> Iterator[str]:
    cut, settings = detail.cut, result.settings.cutoff
    depth = len(cut.gaps) + 1 if cut.gaps else min(len(detail.values), settings.max_results)
    yield f"  values: {detail.value_name}, the first {depth} of {len(detail.values)}"
    for gap in cut.gaps:
        left, right = detail.values[gap.after_rank - 1], detail.values[gap.after_rank]
        yield (
            f"    gap after {gap.after_rank}: {gap.size:+.4f}  ({left:.4f} to {right:.4f})"
            f"{_mark(gap.after_rank, gap.skipped, gap.cliff, cut)}"
        )
    reads = strategy(cut.strategy).reads
    if "gap_threshold" in reads:
        yield f"  gap threshold: {settings.gap_threshold:.4f}"
    if "distance_offset" in reads and detail.values:
        best = min(detail.values[:depth])
        yield (
            f"  distance limit: {best + settings.distance_offset:.4f} "
            f"(best {best:.4f} + {settings.distance_offset:.4f}), "
            f"{'used' if cut.limit is not None else 'not needed'}"
        )
    yield f"  {cut.strategy}: {cut.reason}"
    fell = detail.values[cut.kept :]
    if fell:
        few = ", ".join(f"{value:.4f}" for value in fell[:10])
        yield f"  cut: {len(fell)} with {few}{' …' if len(fell) > 10 else ''}"


def _mark(rank: int, skipped: bool, cliff: bool, cut: Cut) -> str:
    if rank == cut.cliff_after_rank:
        return "  <- cut here"
    if skipped:
        return "  skipped"
    compared = "gap_threshold" in strategy(cut.strategy).reads
    return "  cliff, not the largest" if cliff and compared else ""


def _final(result: PoolResult, listed: Sequence[ChunkRow]) -> Iterator[str]:
    yield f"Result: {numbers.chunk_count(len(result.kept))} of {result.retrieved}, status {result.status}"
    if result.message:
        yield f"  {result.message}"
    for row in kept_first(listed)[: len(result.kept)]:
        why = f"{row.outcome}: {row.reason}"
        yield f"{row.place:5d}. {row.title} [{row.id}]  {row.distance:.4f}  {why}"
    for need in result.needs:
        yield f"  waits for {need.kind}: {need.why}"
    size = numbers.token_count(tokens_of(result.kept))
    yield f"Context: about {size} in {numbers.chunk_count(len(result.kept))}"


def explain(result: PoolResult, chunk_id: str) -> str:
    """A headline and one line per layer. Raises the same InputError for a chunk that is no hit or that is hidden."""
    result = replay_as_user(result)
    row = next((row for row in rows(result) if row.id == chunk_id), None)
    if row is None:
        raise InputError(f"There is no chunk {chunk_id!r} among the hits.", remedy="Use the id of a hit.")
    place = f"kept, place {row.place}" if row.kept else f"dropped by {row.layer}"
    lines = [f"{row.title} ({row.id}): {place}; {row.reason}"]
    for trace in result.traces:
        for decision in trace.decisions:
            if decision.chunk_id == chunk_id:
                lines.append(f"  {trace.layer}: {decision.outcome}, {decision.reason}")
    return "\n".join(lines)
