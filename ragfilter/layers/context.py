"""context: keep the hits that fit into the answer's prompt. Source: docs/design.md#context."""

from __future__ import annotations

from itertools import compress

from ragfilter.answer.context_packing import fits
from ragfilter.layers.layer import LayerInput, LayerOutput, LayerSpec, Mark, no_more
from ragfilter.model import Decision, Hit, LayerTrace, Outcome, PoolResult
from ragfilter.text import numbers

BUDGET_PATH = "context.max_context_tokens"


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Keep the hits that fit into `max_context_tokens`; each drop names the budget."""
    budget = inputs.settings.context.max_context_tokens
    fitting, tokens = fits(hits, budget)
    kept = tuple(compress(hits, fitting))
    if not inputs.explain:
        return LayerOutput(kept)
    full = f"the context budget of {numbers.token_count(budget)} is full"
    decisions = []
    for hit, fit in zip(hits, fitting, strict=True):
        outcome: Outcome = "kept" if fit else "dropped"
        reason = "in the prompt" if fit else full
        decisions.append(Decision(hit.id, "context", outcome, reason, None, float(budget), BUDGET_PATH))
    return LayerOutput(kept, tuple(decisions), note=f"about {numbers.token_count(tokens)}")


def _line(trace: LayerTrace, result: PoolResult) -> str:
    line = trace.note or f"{trace.n_out} fit"
    dropped = trace.count("dropped")
    return f"{line}; {numbers.chunk_count(dropped)} did not fit" if dropped else line


SPEC: LayerSpec = LayerSpec(
    name="context",
    title="Context",
    mark=Mark("□", "square-open", "#704305", "#e4a44a"),
    apply=apply,
    candidates=no_more,
    line=_line,
    plain=lambda decision, hit, result: "did not fit into the prompt",
    explains=0,
)
