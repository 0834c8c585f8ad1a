"""top_k: if neither the cutoff nor the judge is on, keep the first k, as without a filter."""

from __future__ import annotations

from ragfilter.layers.layer import LayerInput, LayerOutput, LayerSpec, Mark, place_words
from ragfilter.model import Decision, Hit, Outcome
from ragfilter.settings.schema import Settings


def limit(settings: Settings) -> int:
    """`retrieval.k`, or the number of hits that the quality layer checks first, if that is larger:
    whoever asks for a threshold over many hits wants all that reach it."""
    quality = settings.quality
    return max(settings.retrieval.k, quality.min_top_k if quality.enabled else 0)


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Keep the first `limit` hits."""
    k = limit(inputs.settings)
    if not inputs.explain:
        return LayerOutput(hits[:k])
    decisions = []
    for place, hit in enumerate(hits, start=1):
        outcome: Outcome = "kept" if place <= k else "dropped"
        reason = f"among the first {k}" if place <= k else f"{place_words(place, hit)}beyond the first {k}"
        decisions.append(Decision(hit.id, "top_k", outcome, reason, float(place), float(k), "retrieval.k"))
    return LayerOutput(hits[:k], tuple(decisions))


SPEC: LayerSpec = LayerSpec(
    name="top_k",
    title="top k",
    mark=Mark("△", "triangle-up-open", "#5c4b3c", "#9e8b7c"),
    apply=apply,
    candidates=lambda settings: settings.retrieval.k,
    acts=lambda settings: not (settings.cutoff.enabled or settings.judge.enabled),
    line=lambda trace, result: f"first {limit(result.settings)}",
    limits=True,
    unreached=lambda trace, result: {"retrieval.k": trace.n_in} if trace.n_out == trace.n_in else {},
    plain=lambda decision, hit, result: f"came after the first {limit(result.settings)}",
    explains=1,
)
