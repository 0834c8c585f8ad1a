"""A result at a glance: how many chunks are kept, why, what each layer did, and the tokens saved.

Source: docs/design.md#page (what the first screen answers). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragfilter.answer.context import fits
from ragfilter.engine.replay import unfiltered
from ragfilter.layers.clearance import level_needed
from ragfilter.layers.cutoff import PLACE, side_by_side
from ragfilter.layers.registry import layer
from ragfilter.model import CutoffDetail, Hit, LayerName, LayerTrace, PoolResult, Pruning
from ragfilter.report.rows import seen
from ragfilter.settings.schema import Settings
from ragfilter.text import numbers

NO_BUDGET = 10**9


@dataclass(frozen=True, slots=True)
class LayerSummary:
    """One layer in one line: hits in and out, milliseconds, and what it did in words."""

    name: LayerName
    enabled: bool
    n_in: int
    n_out: int
    ms: float
    line: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The result at a glance.

    `tokens` estimates the kept chunks in a prompt, `tokens_unfiltered` the first k of a plain
    search (`unfiltered` chunks, of which `left_out` do not fit); both within the context budget.
    `strategies` is how many hits each cutoff strategy would keep; empty if the cutoff is off.
    """

    kept: int
    retrieved: int
    headline: str
    tokens: int
    tokens_unfiltered: int
    unfiltered: int
    left_out: int
    layers: tuple[LayerSummary, ...]
    strategies: tuple[tuple[str, int], ...] = ()


def summary(result: PoolResult, *, as_operator: bool = False) -> Summary:
    """How many chunks stay and why, how many tokens that saves, and what each layer did."""
    result = seen(result, as_operator=as_operator)
    plain = unfiltered(result.pool, result.settings, result.user)
    sent, tokens_unfiltered = in_prompt(plain, result.settings)
    return Summary(
        kept=len(result.kept),
        retrieved=result.retrieved,
        headline=headline(result),
        tokens=in_prompt(result.kept, result.settings)[1],
        tokens_unfiltered=tokens_unfiltered,
        unfiltered=len(plain),
        left_out=len(plain) - sent,
        layers=tuple(
            LayerSummary(t.layer, t.enabled, t.n_in, t.n_out, t.ms, layer_line(t, result))
            for t in result.traces
        ),
        strategies=_strategies(result),
    )


def headline(result: PoolResult) -> str:
    """Why this many stay, in a few words: ``gap 0.118 ≥ 0.100 after hit 3``."""
    if not result.kept:
        return result.message or ("nothing is left" if result.hits else "nothing was found")
    limiting = [t for t in result.traces if t.enabled and layer(t.layer).limits]
    if not limiting:
        return f"all {len(result.kept)} that passed"
    changed = [t for t in limiting if t.n_in != t.n_out]
    why = layer_line((changed or limiting)[-1], result)
    context = result.trace("context")
    over = context.n_in - context.n_out
    budget = numbers.tokens(result.settings.context.max_context_tokens)
    return (
        f"{why}; the context budget of {budget} leaves out {numbers.count(over)}" if over else why
    )


def max_security_level(result: PoolResult) -> int | None:
    """The highest clearance among the kept chunks. If the user's level is too low for all chunks,
    the highest that would have been needed.

    None if nothing is kept for another reason, or if the level of a kept chunk cannot be read.
    Source: Adaptive Retrieval System, "Return Format".
    """
    if result.status == "insufficient_clearance":
        return level_needed((hit.chunk for hit in result.hits), result.user)
    levels = [hit.chunk.clearance for hit in result.kept]
    readable = [level for level in levels if level is not None]
    return max(readable, default=None) if len(readable) == len(levels) else None


def _strategies(result: PoolResult) -> tuple[tuple[str, int], ...]:
    trace = result.trace("cutoff")
    if not isinstance(trace.detail, CutoffDetail) or trace.detail.value_name == PLACE:
        return ()
    cuts = side_by_side(trace.detail, result.settings.cutoff, pinned=trace.count("pinned"))
    return tuple((cut.strategy, cut.kept) for cut in cuts)


def tokens(hits: Sequence[Hit]) -> int:
    """Estimated tokens of the hits in a prompt, without a budget."""
    return int(fits(hits, NO_BUDGET)[1])


def in_prompt(hits: Sequence[Hit], settings: Settings) -> tuple[int, int]:
    """How many of the hits fit into the prompt, and their estimated tokens."""
    fitting, taken = fits(hits, settings.context.max_context_tokens)
    return sum(fitting), taken


def first(unfiltered: int, left_out: int) -> str:
    """``first 15``, or ``9 of the first 15`` if the others do not fit into the prompt."""
    sent = f"{unfiltered - left_out} of the " if left_out else ""
    return f"{sent}first {unfiltered}"


def effects(result: PoolResult) -> dict[LayerName, str]:
    """What each enabled layer changed, in a word or two: ``−83``, ``pins 1``, ``fits``; empty if
    it had nothing to do."""
    words_of: dict[LayerName, str] = {}
    known: set[str] = set()
    for trace in result.traces:
        pins = {each.chunk_id for each in trace.decisions if each.outcome == "pinned"}
        idle = {"context": "fits", "words": "" if trace.note else "sorts"}
        if isinstance(trace.detail, Pruning) and trace.detail.after < trace.detail.before:
            idle["prune"] = f"−{numbers.tokens(trace.detail.before - trace.detail.after)}"
        if not trace.enabled or not trace.n_in:
            effect = ""
        elif change := trace.n_out - trace.n_in:
            effect = f"{'+' if change > 0 else '−'}{numbers.count(abs(change))}"
        elif new := len(pins - known):
            effect = f"pins {new}"
        else:
            effect = idle.get(trace.layer, "")
        words_of[trace.layer] = effect
        known |= pins
    return words_of


def layer_line(trace: LayerTrace, result: PoolResult) -> str:
    """What a layer did to this query, in one line: ``11 chunks fail their rule``."""
    if not trace.enabled:
        return "off"
    if not trace.n_in:
        return "nothing came in"
    return layer(trace.layer).line(trace, result)
