"""A result for an audience: what was found, what was dropped and why, without jargon. Pure.

Every layer declares its own phrase (`LayerSpec.plain`). This module adds the counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ragfilter.engine.replay import unfiltered
from ragfilter.layers.registry import layer
from ragfilter.model import LayerName, PoolResult
from ragfilter.report.rows import seen
from ragfilter.report.summary import in_prompt
from ragfilter.text import numbers


@dataclass(frozen=True, slots=True)
class DropGroup:
    """What one layer dropped for one reason. `words` follow the number of `ids`."""

    layer: LayerName
    words: str
    ids: tuple[str, ...]
    setting: str = ""
    """The path of the setting that decided about the first of them, if one did."""

    @property
    def line(self) -> str:
        """``83 were for other questions``."""
        return f"{numbers.count(len(self.ids))} {counted(self.words, len(self.ids))}"


@dataclass(frozen=True, slots=True)
class Story:
    """Chunks found, kept and dropped. A plain search would send the first `unfiltered`, as far as
    they fit; `beyond` of the kept are not among them, and `fell` is what was dropped of them.
    `brought` of the kept were not found but referred to. Tokens are estimates of the prompt's."""

    found: int
    kept: int
    brought: int
    drops: tuple[DropGroup, ...]
    unfiltered: int
    tokens_unfiltered: int
    tokens: int
    message: str = ""
    """Why nothing is kept, if the result says so. That the collection is incomplete is shown next
    to every story, whatever is kept."""
    unjudged: str = ""
    """Why what is kept has no verdict, if an LLM was to judge it."""
    drops_from_unfiltered: tuple[DropGroup, ...] = ()
    beyond: int = 0


def story(result: PoolResult) -> Story:
    """Tell the result as its user sees it."""
    result = seen(result)
    brought = sum(hit.rank == 0 for hit in result.kept)
    plain = unfiltered(result.pool, result.settings, result.user)
    first = {hit.id for hit in plain}
    falls = _falls(result)
    fell = (replace(fall, ids=tuple(i for i in fall.ids if i in first)) for fall in falls)
    return Story(
        found=result.retrieved,
        kept=len(result.kept),
        brought=brought,
        drops=falls,
        unfiltered=len(plain),
        tokens_unfiltered=in_prompt(plain, result.settings)[1],
        tokens=in_prompt(result.kept, result.settings)[1],
        message="" if result.kept else result.message.removesuffix(result.pool.incomplete).strip(),
        unjudged=_unjudged(result),
        drops_from_unfiltered=tuple(fall for fall in fell if fall.ids),
        beyond=sum(hit.id not in first for hit in result.kept) - brought,
    )


def _unjudged(result: PoolResult) -> str:
    """Why the chunks that stay have no verdict, if an LLM was to judge them."""
    if result.trace("judge").failed:
        return "The LLM that was to judge them failed."
    waits = any(need.layer == "judge" for need in result.needs)
    return "The LLM has not judged them yet." if waits else ""


def sentences(story: Story, price: float = 0.0, currency: str = "") -> tuple[str, ...]:
    """What plain search finds and what of it passes the filter, why the others do not, and the
    effect on the prompt. `price` is for a million prompt tokens, in `currency`."""
    if not story.found:
        return (story.message or "Nothing was found.",)
    told = [_passing(story), _brought(story), story.unjudged, story.message]
    return (*filter(None, told), *([_prompt(story, price, currency)] if story.kept else []))


def counted(words: str, n: int) -> str:
    """`words` in the right form for `n`: "were for other questions" becomes "was …" for one."""
    return f"was {words[5:]}" if n == 1 and words.startswith("were ") else words


MAX_REASONS = 3
"""How many reasons the first sentence names."""


def _passing(story: Story) -> str:
    """``15 chunks found by plain search, 2 pass the filter: 13 were about another armor
    class.``"""
    n, own = story.unfiltered, story.kept - story.brought
    if own == n and not story.beyond:
        passing = "and it passes the filter" if n == 1 else "and all pass the filter"
    elif not own:
        passing = "none pass the filter"
    else:
        passing = f"{numbers.count(own)} {'passes' if own == 1 else 'pass'} the filter"
    if story.beyond:
        passing += f" ({numbers.count(story.beyond)} from farther down the list)"
    ranked = sorted(story.drops_from_unfiltered, key=lambda fall: -len(fall.ids))
    reasons = [fall.line for fall in ranked[:MAX_REASONS]]
    if others := sum(len(fall.ids) for fall in ranked[MAX_REASONS:]):
        reasons.append(f"{numbers.count(others)} fell for other reasons")
    why = f": {', '.join(reasons)}" if reasons else ""
    joint = " " if passing.startswith("and") else ", "
    return f"{numbers.chunks(n)} found by plain search{joint}{passing}{why}."


def _brought(story: Story) -> str:
    if not story.brought:
        return ""
    n = story.brought
    return f"{numbers.count(n)} more {'was' if n == 1 else 'were'} added, since others refer there."


def _prompt(story: Story, price: float, currency: str) -> str:
    before, after = story.tokens_unfiltered, story.tokens
    if after == before:
        return f"The prompt stays at {numbers.tokens(after)}."
    word = "shrinks" if after < before else "grows"
    change = f"The prompt {word} from {numbers.count(before)} to {numbers.tokens(after)}"
    if after > before:
        return f"{change}."
    saved = ""
    # A number without a currency would say nothing.
    if price and currency:
        less = numbers.money((before - after) * price / 1e6, currency)
        saved = f", {less} saved per question"
    return f"{change}, {100 * (before - after) / before:.0f}% less{saved}."


def _falls(result: PoolResult) -> tuple[DropGroup, ...]:
    """What was dropped, in the order of the layers; within a layer, most frequent reason first."""
    kept = {hit.id for hit in result.kept}
    hits = {hit.id: hit for hit in result.hits}
    reasons_by_layer: dict[LayerName, dict[str, list[str]]] = {t.layer: {} for t in result.traces}
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
