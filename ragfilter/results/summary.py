"""A result at a glance: how many chunks are kept, why, what each layer did, and the tokens saved; also as a story for
an audience, in which every layer has its own phrase (`LayerSpec.plain`). Pure. Source: docs/design.md#page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragfilter.answer.context_packing import fits
from ragfilter.engine.pool import unfiltered
from ragfilter.engine.replay import replay_as_user
from ragfilter.layers.cutoff import cuts_by_strategy
from ragfilter.layers.registry import layer
from ragfilter.layers.visibility import level_needed
from ragfilter.model import CutoffDetail, Hit, LayerTrace, PoolResult, Pruning
from ragfilter.settings.schema import Settings
from ragfilter.text import numbers

NO_BUDGET = 10**9


@dataclass(frozen=True, slots=True)
class Summary:
    """The result at a glance. `tokens` estimates the kept chunks in a prompt, `tokens_unfiltered` the first k of a
    plain search (`unfiltered` chunks, of which `left_out` do not fit); both within the budget. `layers` has what each
    layer did, also in words. `strategies` has how many hits each cutoff strategy would keep, none if the cutoff is off.
    """

    kept: int
    retrieved: int
    why: str
    tokens: int
    tokens_unfiltered: int
    unfiltered: int
    left_out: int
    layers: tuple[tuple[LayerTrace, str], ...]
    strategies: tuple[tuple[str, int], ...] = ()


def summary(result: PoolResult, *, as_operator: bool = False) -> Summary:
    """Summarise how many chunks stay and why, how many tokens this saves, and what layers did."""
    result = result if as_operator else replay_as_user(result)
    plain = unfiltered(result.pool, result.settings, result.user)
    sent, tokens_unfiltered = prompt_size(plain, result.settings)
    return Summary(
        kept=len(result.kept),
        retrieved=result.retrieved,
        why=why_this_many(result),
        tokens=prompt_size(result.kept, result.settings)[1],
        tokens_unfiltered=tokens_unfiltered,
        unfiltered=len(plain),
        left_out=len(plain) - sent,
        layers=tuple((trace, layer_line(trace, result)) for trace in result.traces),
        strategies=_strategies(result),
    )


def why_this_many(result: PoolResult) -> str:
    """Why this many stay, in a few words: ``gap 0.118 ≥ 0.100 after hit 3``."""
    if not result.kept:
        return result.message or ("nothing is left" if result.hits else "nothing was found")
    limiting = [t for t in result.traces if t.enabled and layer(t.layer).limits]
    changed = [t for t in limiting if t.n_in != t.n_out]
    why = layer_line((changed or limiting)[-1], result)
    context = result.trace("context")
    over = context.n_in - context.n_out
    budget = numbers.token_count(result.settings.context.max_context_tokens)
    return f"{why}; the context budget of {budget} leaves out {numbers.count(over)}" if over else why


def max_security_level(result: PoolResult) -> int | None:
    """The highest clearance among the kept chunks or, if the user's level is too low for all chunks, the highest that
    any of them needs. None if nothing is kept for another reason, or a kept chunk's level cannot be read.

    Source: Adaptive Retrieval System, "Return Format"."""
    if result.status == "insufficient_clearance":
        return level_needed((hit.chunk for hit in result.hits), result.user)
    levels = [hit.chunk.clearance for hit in result.kept]
    readable = [level for level in levels if level is not None]
    return max(readable, default=None) if len(readable) == len(levels) else None


def _strategies(result: PoolResult) -> tuple[tuple[str, int], ...]:
    trace = result.trace("cutoff")
    if not isinstance(trace.detail, CutoffDetail) or trace.detail.value_kind == "place":
        return ()
    cuts = cuts_by_strategy(trace.detail, result.settings.cutoff, pinned=trace.count("pinned"))
    return tuple((cut.strategy, cut.kept) for cut in cuts)


def tokens_of(hits: Sequence[Hit]) -> int:
    """Estimated tokens of the hits in a prompt, without a budget."""
    return int(fits(hits, NO_BUDGET)[1])


def prompt_size(hits: Sequence[Hit], settings: Settings) -> tuple[int, int]:
    """How many of the hits fit into the prompt, and their estimated tokens."""
    fitting, taken = fits(hits, settings.context.max_context_tokens)
    return sum(fitting), taken


def unfiltered_label(unfiltered: int, left_out: int) -> str:
    """``first 15``, or ``9 of the first 15`` if the others do not fit into the prompt."""
    sent = f"{unfiltered - left_out} of the " if left_out else ""
    return f"{sent}first {unfiltered}"


def effects(result: PoolResult) -> dict[str, str]:
    """What each layer changed, in a word or two: ``−83``, ``pins 1``, ``fits``; empty if it had nothing to do."""
    words_of: dict[str, str] = {}
    known: set[str] = set()
    for trace in result.traces:
        pins = {each.chunk_id for each in trace.decisions if each.outcome == "pinned"}
        idle = {"context": "fits", "words": "" if trace.note else "sorts"}
        if isinstance(trace.detail, Pruning) and trace.detail.after < trace.detail.before:
            idle["prune"] = f"−{numbers.token_count(trace.detail.before - trace.detail.after)}"
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


# the story


@dataclass(frozen=True, slots=True)
class DropGroup:
    """The chunks that one layer dropped for one reason. `words` follow the number of `ids`."""

    layer: str
    words: str
    ids: tuple[str, ...]
    setting: str = ""
    """The path of the setting that dropped the first of them, if any."""

    @property
    def line(self) -> str:
        """``83 were for other questions``."""
        return f"{numbers.count(len(self.ids))} {agreeing(self.words, len(self.ids))}"


@dataclass(frozen=True, slots=True)
class Story:
    """Chunks found, kept and dropped. A plain search would send the first `unfiltered`, as far as
    they fit in the prompt; `drops_from_unfiltered` are dropped from these. `brought` counts kept chunks
    that were only referred to, `beyond` those found further down than these. Tokens are estimates."""

    found: int
    kept: int
    brought: int
    drops: tuple[DropGroup, ...]
    unfiltered: int
    tokens_unfiltered: int
    tokens: int
    message: str = ""
    """Why nothing is kept, without the note on an incomplete collection, which every story shows anyway."""
    unjudged: str = ""
    """Why the kept chunks have no verdicts although an LLM should judge them; empty otherwise."""
    drops_from_unfiltered: tuple[DropGroup, ...] = ()
    beyond: int = 0


def story(result: PoolResult) -> Story:
    """Tell the result as its user sees it."""
    result = replay_as_user(result)
    brought = sum(hit.rank == 0 for hit in result.kept)
    plain = unfiltered(result.pool, result.settings, result.user)
    first = {hit.id for hit in plain}
    drops = _drops(result)
    unfiltered_drops = (replace(drop, ids=tuple(i for i in drop.ids if i in first)) for drop in drops)
    return Story(
        found=result.retrieved,
        kept=len(result.kept),
        brought=brought,
        drops=drops,
        unfiltered=len(plain),
        tokens_unfiltered=prompt_size(plain, result.settings)[1],
        tokens=prompt_size(result.kept, result.settings)[1],
        message="" if result.kept else result.message.removesuffix(result.pool.incomplete).strip(),
        unjudged=_unjudged(result),
        drops_from_unfiltered=tuple(drop for drop in unfiltered_drops if drop.ids),
        beyond=sum(hit.id not in first for hit in result.kept) - brought,
    )


def _unjudged(result: PoolResult) -> str:
    if result.trace("judge").failed:
        return "The LLM that was to judge them failed."
    waits = any(need.layer == "judge" for need in result.needs)
    return "The LLM has not judged them yet." if waits else ""


def sentences(story: Story, price: float = 0.0, currency: str = "", *, loss: str = "") -> tuple[str, ...]:
    """The story in sentences: any `loss`, what plain search finds, what passes the filter, why the rest does not, and
    the effect on the prompt, which is no gain after a loss. `price` is per million prompt tokens, in `currency`."""
    if not story.found:
        return (story.message or "Nothing was found.",)
    were, them = ("was", "it") if story.brought == 1 else ("were", "them")
    brought = f"{numbers.count(story.brought)} more {were} added, because other chunks refer to {them}."
    parts = [loss, _passing(story), brought if story.brought else "", story.unjudged, story.message]
    # A small prompt without anything that plain search found is no gain.
    shows_prompt = story.kept > story.brought + story.beyond and not loss
    return (*filter(None, parts), *([_prompt(story, price, currency)] if shows_prompt else []))


def agreeing(words: str, n: int) -> str:
    """`words` in the right form for `n`: "were for other questions" becomes "was …" for one."""
    return f"was {words[5:]}" if n == 1 and words.startswith("were ") else words


MAX_REASONS = 4
"""How many reasons the first sentence names."""


def _passing(story: Story) -> str:
    """``Plain search found 15 passages; 2 pass the filter: 13 were about another armor class.``"""
    n, passed = story.unfiltered, story.kept - story.brought - story.beyond
    if passed == n:
        passing = ", and it passes the filter" if n == 1 else ", and all pass the filter"
    elif not passed:
        passing = "; none pass the filter"
    else:
        passing = f"; {numbers.count(passed)} {'passes' if passed == 1 else 'pass'} the filter"
    if story.beyond:
        passing += f", {'with' if passed else 'but'} {numbers.count(story.beyond)} from farther down the list"
    ranked = sorted(story.drops_from_unfiltered, key=lambda drop: -len(drop.ids))
    reasons = [drop.line for drop in ranked[:MAX_REASONS]]
    if others := sum(len(drop.ids) for drop in ranked[MAX_REASONS:]):
        reasons.append(f"{numbers.count(others)} {agreeing('were dropped for other reasons', others)}")
    why = f": {', '.join(reasons)}" if reasons else ""
    return f"Plain search found {numbers.counted(n, 'passage')}{passing}{why}."


def _prompt(story: Story, price: float, currency: str) -> str:
    before, after = story.tokens_unfiltered, story.tokens
    if after == before:
        return f"The prompt stays at {numbers.token_count(after)}."
    word = "shrinks" if after < before else "grows"
    change = f"The prompt {word} from {numbers.count(before)} to {numbers.token_count(after)}"
    if after > before:
        return f"{change}."
    saved = ""
    # A price without a currency would mean nothing.
    if price and currency:
        less = numbers.money((before - after) * price / 1e6, currency)
        saved = f", {less} saved per question"
    return f"{change}, {100 * (before - after) / before:.0f}% less{saved}."


def _drops(result: PoolResult) -> tuple[DropGroup, ...]:
    """The dropped chunks in layer order; within a layer, the most frequent reason first."""
    kept = {hit.id for hit in result.kept}
    hits = {hit.id: hit for hit in result.hits}
    reasons_by_layer: dict[str, dict[str, list[str]]] = {t.layer: {} for t in result.traces}
    deciding = result.outcomes()
    for i, decision in deciding.items():
        if i in kept or decision.outcome != "dropped":
            continue
        spec = layer(decision.layer)
        plain = spec.plain
        words = f"did not pass {spec.title}" if plain is None else plain(decision, hits[i], result)
        reasons_by_layer[decision.layer].setdefault(words, []).append(i)
    return tuple(
        DropGroup(name, words, tuple(ids), deciding[ids[0]].setting)
        for name, reasons in reasons_by_layer.items()
        for words, ids in sorted(reasons.items(), key=lambda reason: -len(reason[1]))
    )
