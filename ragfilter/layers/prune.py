"""prune: leave out of the context what adds nothing to the answer. It drops no chunk.

Source: docs/design.md#prune. The decisions:

- A piece (`answer.pieces`) stays if it contributes at least a share of what the best piece of all
  kept chunks does, since the scale of contributions differs from question to question.
- The best piece of every chunk stays, because the chunk is kept. A heading stays if anything below
  it does, and the first one always.
- Until a pruner has said what pieces contribute, or if it fails, chunks stay whole.
"""

from __future__ import annotations

from dataclasses import replace

from ragfilter.answer.context import cost, cost_in_prompt
from ragfilter.answer.pieces import TextPiece, pieces
from ragfilter.layers.base import LayerInput, LayerOutput, LayerSpec, Mark, no_more
from ragfilter.model import Decision, Hit, LayerTrace, Pending, PoolResult, PrunedPiece, Pruning
from ragfilter.text import numbers

PRUNER = "prune"
"""Under which name a pool says that the pruner failed."""
EPSILON = 1e-9


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Strike what contributes too little, in every hit."""
    error = next((f.error for f in inputs.pool.failures if f.reranker == PRUNER), "")
    if error:
        note = f"the pruner failed ({error}); every chunk is whole"
        whole = tuple(Decision(hit.id, "prune", "fallback", "whole") for hit in hits)
        return LayerOutput(hits, whole, note=note, failed=True)
    missing = tuple(hit.id for hit in hits if hit.contributions is None)
    if missing:
        why = f"no pruner has read {numbers.chunks(len(missing))} yet"
        need = Pending("prune", "prune", missing, why)
        whole = tuple(Decision(hit.id, "prune", "kept", "whole") for hit in hits)
        return LayerOutput(hits, whole, (need,), note=f"{why}; for now, they are whole")
    best = max((v for hit in hits for v in hit.contributions or ()), default=0.0)
    limit = inputs.settings.prune.share * best
    pruned = {hit.id: _judge(hit, limit) for hit in hits}
    kept = tuple(replace(hit, struck=_spans(pruned[hit.id])) for hit in hits)
    before = sum(cost(hit.chunk) for hit in hits)
    detail = Pruning(limit, pruned, before, sum(map(cost_in_prompt, kept)))
    if not inputs.explain:
        return LayerOutput(kept, detail=detail)
    decisions = tuple(_decision(hit, pruned[hit.id], limit) for hit in kept)
    return LayerOutput(kept, decisions, detail=detail)


def _judge(hit: Hit, limit: float) -> tuple[PrunedPiece, ...]:
    """The pieces of one chunk, each with what became of it."""
    parts, values = pieces(hit.chunk.text), hit.contributions or ()
    if not parts:
        return ()
    best = max(values)
    stays = [v >= min(limit, best) - EPSILON for v in values]
    for place, part in enumerate(parts):
        if part.kind == "heading":
            stays[place] = stays[place] or place == _first(parts) or _below(parts, stays, place)
    return tuple(
        PrunedPiece(part.start, part.end, value, not stay)
        for part, value, stay in zip(parts, values, stays, strict=True)
    )


def _first(parts: tuple[TextPiece, ...]) -> int:
    return next(place for place, part in enumerate(parts) if part.kind == "heading")


def _below(parts: tuple[TextPiece, ...], stays: list[bool], place: int) -> bool:
    """Whether anything stays between this heading and the next."""
    for part, stay in zip(parts[place + 1 :], stays[place + 1 :], strict=True):
        if part.kind == "heading":
            return False
        if stay:
            return True
    return False


def _spans(parts: tuple[PrunedPiece, ...]) -> tuple[tuple[int, int], ...]:
    """What is struck, neighbours as one span."""
    spans: list[tuple[int, int]] = []
    for part in parts:
        if part.struck and spans and spans[-1][1] == part.start:
            spans[-1] = spans[-1][0], part.end
        elif part.struck:
            spans.append((part.start, part.end))
    return tuple(spans)


def _decision(hit: Hit, parts: tuple[PrunedPiece, ...], limit: float) -> Decision:
    struck = [part.value for part in parts if part.struck]
    if not struck:
        return Decision(hit.id, "prune", "kept", "whole", limit=limit)
    reason = (
        f"{len(struck)} of {len(parts)} parts left out, with at most {max(struck):.3f} where "
        f"{limit:.3f} is needed; {cost_in_prompt(hit)} of {numbers.tokens(cost(hit.chunk))} stay"
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
    saved = numbers.tokens(detail.before - detail.after)
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
