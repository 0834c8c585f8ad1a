"""A result for an audience: what was found, what was dropped and why, without jargon. Pure.

Every layer declares its own phrase (`LayerSpec.plain`). This module adds the counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

from ragfilter.engine.replay import unfiltered
from ragfilter.layers.base import WEIGHED
from ragfilter.layers.cutoff import cut_of
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import LayerName, PoolResult
from ragfilter.report.rows import seen
from ragfilter.report.summary import in_prompt
from ragfilter.settings.schema import STRATEGIES
from ragfilter.text import numbers


@dataclass(frozen=True, slots=True)
class Fall:
    """What one layer dropped for one reason. `words` follow the number of `ids`."""

    layer: LayerName
    words: str
    ids: tuple[str, ...]

    @property
    def line(self) -> str:
        """``83 were for other questions``."""
        return f"{numbers.count(len(self.ids))} {counted(self.words, len(self.ids))}"


@dataclass(frozen=True, slots=True)
class LayerFalls:
    """What one layer dropped, with all its reasons."""

    layer: LayerName
    falls: tuple[Fall, ...]

    @property
    def line(self) -> str:
        """``80 were about another armor class, 3 were for other questions``."""
        return ", ".join(fall.line for fall in self.falls)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(i for fall in self.falls for i in fall.ids)


@dataclass(frozen=True, slots=True)
class Story:
    """Passages found, kept and dropped, and the prompt's estimated tokens with the filter and
    without it, which would send the first `unfiltered` passages, except `left_out` that do not fit.
    `brought` is how many of the kept were not found but referred to."""

    found: int
    kept: int
    brought: int
    falls: tuple[Fall, ...]
    unfiltered: int
    tokens_unfiltered: int
    tokens: int
    message: str = ""
    """Why nothing is kept, if the result says so. That the collection is incomplete is shown next
    to every story, whatever is kept."""
    left_out: int = 0
    unjudged: str = ""
    """Why what is kept has no verdict, if an LLM was to judge it."""

    @property
    def steps(self) -> tuple[LayerFalls, ...]:
        """What was dropped, layer by layer."""
        grouped = groupby(self.falls, key=lambda fall: fall.layer)
        return tuple(LayerFalls(layer, tuple(falls)) for layer, falls in grouped)


def story(result: PoolResult) -> Story:
    """Tell the result as its user sees it."""
    result = seen(result)
    brought = sum(hit.rank == 0 for hit in result.kept)
    plain = unfiltered(result.pool, result.settings, result.user)
    sent, tokens_unfiltered = in_prompt(plain, result.settings)
    return Story(
        found=result.retrieved,
        kept=len(result.kept),
        brought=brought,
        falls=_falls(result),
        unfiltered=len(plain),
        tokens_unfiltered=tokens_unfiltered,
        tokens=in_prompt(result.kept, result.settings)[1],
        message="" if result.kept else result.message.removesuffix(result.pool.incomplete).strip(),
        left_out=len(plain) - sent,
        unjudged=_unjudged(result),
    )


def called(result: PoolResult, *, doubt: bool = False) -> str:
    """What the passages are that stay: ``needed`` if a layer weighed them, no LLM has still to
    judge them, and no `doubt` is left that they answer the question; otherwise ``kept``."""
    weighed = any(t.enabled and layer(t.layer).explains == WEIGHED for t in result.traces)
    weighed = weighed and not _unjudged(result)
    return "needed" if weighed and not doubt else "kept"


def _unjudged(result: PoolResult) -> str:
    """Why the passages that stay have no verdict, if an LLM was to judge them."""
    if result.trace("judge").failed:
        return "The LLM that was to judge them failed."
    waits = any(need.layer == "judge" for need in result.needs)
    return "The LLM has not judged them yet." if waits else ""


def sentences(
    story: Story, price: float = 0.0, currency: str = "", *, word: str = "needed"
) -> tuple[str, ...]:
    """What was found and needed, why the others were dropped, and the effect on the prompt. `price`
    is that of a million prompt tokens, in `currency`. `word` is what the passages are
    that are kept."""
    if not story.found:
        return (story.message or "Nothing was found.",)
    sentences = [_needed(story, word)]
    if story.unjudged:
        sentences.append(story.unjudged)
    if story.falls:
        sentences.append(f"{', '.join(fall.line for fall in story.falls)}.")
    if story.message:
        sentences.append(story.message)
    if story.kept:
        sentences.append(_prompt(story, price, currency))
    return tuple(sentences)


def cutting(result: PoolResult) -> str:
    """What the cutoff's phrase means, for the strategy that cut; empty if it dropped nothing or its
    phrase is clear."""
    detail = cut_of(result)
    if detail is None or not result.trace("cutoff").count("dropped"):
        return ""
    cut = detail.cut
    spec = strategy(cut.strategy)
    if cut.cliff_after_rank is not None:
        where = re.split("[;.(]", STRATEGIES[spec.name])[0].strip()
        return f"The cliff is {where}: what comes after it is farther from the question."
    if cut.limit is not None and spec.weigh is None:
        return "“Too far” means beyond a limit set from the best match; the cut is not at a jump."
    return ""


def counted(words: str, n: int) -> str:
    """`words` in the right form for `n`: "were for other questions" becomes "was …" for one."""
    return f"was {words[5:]}" if n == 1 and words.startswith("were ") else words


def _needed(story: Story, word: str) -> str:
    start = f"Of {numbers.counted(story.found, 'passage')} found"
    own = story.kept - story.brought
    needed = "none is" if not own else "1 is" if own == 1 else f"{numbers.count(own)} are"
    if not story.brought:
        return f"{start}, {needed} {word}."
    more = f"{numbers.count(story.brought)} more {'was' if story.brought == 1 else 'were'} added"
    return f"{start}, {needed} {word}; {more}, since what is {word} refers there."


def _prompt(story: Story, price: float, currency: str) -> str:
    before, after = story.tokens_unfiltered, story.tokens
    if after == before:
        return f"The prompt stays at {numbers.tokens(after)}."
    word = "shrinks" if after < before else "grows"
    sent = f"{numbers.count(story.unfiltered - story.left_out)} of " if story.left_out else ""
    first = f"first {numbers.counted(story.unfiltered, 'passage').removeprefix('1 ')}"
    change = (
        f"The prompt {word} from {numbers.count(before)} ({sent}the {first}) to "
        f"{numbers.tokens(after)}"
    )
    if after > before:
        return f"{change}."
    saved = ""
    # A number without a currency would say nothing.
    if price and currency:
        less = numbers.money((before - after) * price / 1e6, currency)
        saved = f", {less} saved per question"
    return f"{change}: {100 * (before - after) / before:.0f}% less{saved}."


def _falls(result: PoolResult) -> tuple[Fall, ...]:
    """What was dropped, in the order of the layers; within a layer, most frequent reason first."""
    kept = {hit.id for hit in result.kept}
    hits = {hit.id: hit for hit in result.hits}
    reasons_by_layer: dict[LayerName, dict[str, list[str]]] = {t.layer: {} for t in result.traces}
    for i, decision in result.outcomes().items():
        if i in kept or decision.outcome != "dropped":
            continue
        spec = layer(decision.layer)
        plain = spec.plain
        words = f"did not pass {spec.title}" if plain is None else plain(decision, hits[i], result)
        reasons_by_layer[decision.layer].setdefault(words, []).append(i)
    return tuple(
        Fall(name, words, tuple(ids))
        for name, reasons in reasons_by_layer.items()
        for words, ids in sorted(reasons.items(), key=lambda reason: -len(reason[1]))
    )
