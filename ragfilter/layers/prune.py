"""prune: leave sentences out of the context that add nothing to the answer. It drops no chunk.

Source: docs/design.md#prune. A piece is a sentence, a heading, or a block that only makes sense as a whole: a table, a
list or code, with the line that introduces it ("Parameters:"). Rows written as sentences ("Level 3: 5. Level 4: 6.")
are a table too. The pieces cover the text, so that spans can be cut out of it. A heading stays if anything below it
does. Chunks stay whole until a pruner has scored their pieces, or if it fails."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise
from operator import attrgetter

from ragfilter.answer.context_packing import block_tokens, block_tokens_in_prompt
from ragfilter.layers.layer import EPSILON, LayerInput, LayerOutput, LayerSpec, Mark, no_more
from ragfilter.model import Decision, Hit, LayerTrace, Need, PoolResult, PrunedPiece, Pruning
from ragfilter.text import numbers
from ragfilter.text.sentences import pieces


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Strike the pieces of every hit that contribute too little."""
    error = next((f.error for f in inputs.pool.failures if f.kind == "prune"), "")
    if error:
        note = f"the pruner failed ({error}); every chunk is whole"
        whole = tuple(Decision(hit.id, "prune", "fallback", "whole") for hit in hits)
        return LayerOutput(hits, whole, note=note, failed=True)
    missing = tuple(hit.id for hit in hits if hit.contributions is None)
    if missing:
        why = f"no pruner has read {numbers.chunk_count(len(missing))} yet"
        need = Need("prune", "prune", missing, why)
        whole = tuple(Decision(hit.id, "prune", "kept", "whole") for hit in hits)
        return LayerOutput(hits, whole, (need,), note=f"{why}; for now, they are whole")
    limit = inputs.settings.prune.share * max((v for hit in hits for v in hit.contributions or ()), default=0.0)
    pruned = {hit.id: _mark_pieces(hit, limit) for hit in hits}
    kept = tuple(replace(hit, struck=_spans(pruned[hit.id])) for hit in hits)
    before = sum(block_tokens(hit.chunk) for hit in hits)
    detail = Pruning(limit, pruned, before, sum(map(block_tokens_in_prompt, kept)))
    if not inputs.explain:
        return LayerOutput(kept, detail=detail)
    decisions = tuple(_decision(hit, pruned[hit.id], limit) for hit in kept)
    return LayerOutput(kept, decisions, detail=detail)


def _mark_pieces(hit: Hit, limit: float) -> tuple[PrunedPiece, ...]:
    parts, values = pieces(hit.chunk.text), hit.contributions or ()
    if not parts:
        return ()
    best = max(values)
    stays = [v >= min(limit, best) - EPSILON for v in values]
    headings = [place for place, part in enumerate(parts) if part.kind == "heading"]
    for place, end in pairwise([*headings, len(parts)]):
        # The first heading stays, and others if any piece up to the next heading does.
        stays[place] = place == headings[0] or any(stays[place:end])
    every = zip(parts, values, stays, strict=True)
    return tuple(PrunedPiece(part.start, part.end, value, not stay) for part, value, stay in every)


def _spans(parts: tuple[PrunedPiece, ...]) -> tuple[tuple[int, int], ...]:
    """The spans to strike, with adjacent ones merged."""
    runs = ([*group] for struck, group in groupby(parts, key=attrgetter("struck")) if struck)
    return tuple((run[0].start, run[-1].end) for run in runs)


def _decision(hit: Hit, parts: tuple[PrunedPiece, ...], limit: float) -> Decision:
    struck = [part.value for part in parts if part.struck]
    if not struck:
        return Decision(hit.id, "prune", "kept", "whole", limit=limit)
    reason = (
        f"{len(struck)} of {len(parts)} parts left out, with at most {max(struck):.3f} where "
        f"{limit:.3f} is needed; {block_tokens_in_prompt(hit)} of {numbers.token_count(block_tokens(hit.chunk))} stay"
    )
    return Decision(hit.id, "prune", "kept", reason, max(struck), limit, "prune.share")


def _line(trace: LayerTrace, result: PoolResult) -> str:
    detail = trace.detail
    if not isinstance(detail, Pruning):
        return trace.note
    parts = [part for each in detail.pieces.values() for part in each]
    struck = sum(part.struck for part in parts)
    if not struck:
        return "every chunk is whole"
    saved = numbers.token_count(detail.before - detail.after)
    return f"leaves out {struck} of {len(parts)} parts, {saved} of {detail.before:,}"


SPEC: LayerSpec = LayerSpec(
    name="prune",
    title="Prune",
    mark=Mark("✂", "line-ne", "#482500", "#acffea"),
    apply=apply,
    candidates=no_more,
    line=_line,
    off=lambda settings: "off; every chunk is whole",
    cost=lambda settings: "local model",
    first=("share",),
    explains=0,
)
