"""Drafts rules for many chunks, one after the other: the expected cost, and the results.

Source: docs/design.md#drafting.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ragfilter.answer.reply import prompt_tokens, total_usage
from ragfilter.answer.stream import Prices
from ragfilter.errors import ChatError, ChatErrorKind, InputError
from ragfilter.model import Chunk
from ragfilter.protocols import ChatModel, Usage
from ragfilter.rules.draft import Draft, messages, suggest
from ragfilter.rules.templates import Template, recognise
from ragfilter.text.tokens import estimate

log = logging.getLogger(__name__)

MOST_FAILURES = 3
"""Consecutive failures of the endpoint after which a run ends."""
MOST_WAITS = 3
WAIT_S = 5.0
MOST_WAIT_S = 60.0
_HOPELESS: tuple[ChatErrorKind, ...] = ("auth", "unreachable")
_OF_THE_ANSWER = ("", "chunk", "rule")


@dataclass(frozen=True, slots=True)
class Totals:
    """The outcome of a run: drafts with a rule, how many of them needed a second answer or carry
    remarks, chunks without a draft, the tokens used and, if prices are set, their cost in
    `currency`."""

    drafted: int = 0
    repaired: int = 0
    doubtful: int = 0
    without: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    currency: str = ""
    seconds: float = 0.0


def foresee(sample: Sequence[Chunk], total: int, templates: Sequence[Template]) -> Usage:
    """The approximate cost of the first answers for `total` chunks, estimated from a `sample` of
    whole chunks. Each answer is assumed to be as long as its template's example."""
    prompt = completion = 0
    for chunk in sample:
        try:
            template = recognise(chunk, templates)
        except InputError:
            # No prompt is sent for this chunk.
            continue
        prompt += prompt_tokens(messages(chunk, template))
        completion += estimate(template.example_rule.pretty)
    share = total / max(1, len(sample))
    return Usage(round(prompt * share), round(completion * share), estimated=True)


def drafts(
    chunks: Iterable[Chunk],
    chat: ChatModel,
    *,
    timeout_s: float,
    templates: Sequence[Template] | None,
    wait: Callable[[float], object] = time.sleep,
) -> Iterator[Draft]:
    """Yield a draft for each chunk, even if it failed. Waits as long as a rate limit asks for, up
    to a minute, at most three times per chunk.

    Raises ChatError after a failure that would also affect the next chunk: the endpoint is
    unreachable or refuses the key, or it failed three times in a row.
    """
    failures = 0
    for chunk in chunks:
        draft = suggest(chunk, chat, timeout_s=timeout_s, templates=templates)
        for _ in range(MOST_WAITS):
            if draft.failed != "rate_limit":
                break
            pause = min(WAIT_S if draft.retry_after is None else draft.retry_after, MOST_WAIT_S)
            log.warning("The rate limit is reached; trying again in %g s.", pause)
            wait(pause)
            draft = suggest(chunk, chat, timeout_s=timeout_s, templates=templates)
        yield draft
        failures = 0 if draft.failed in _OF_THE_ANSWER else failures + 1
        if draft.failed in _HOPELESS or failures >= MOST_FAILURES:
            times = "" if failures < MOST_FAILURES else f" {failures} times in a row"
            raise ChatError(
                f"The endpoint failed{times}, so no more chunks are tried: {draft.error}",
                kind="server",
                remedy="Try again once it works.",
            )


def total(made: Sequence[Draft], seconds: float, prices: Prices | None = None) -> Totals:
    """The totals of the drafts `made`, which took `seconds`."""
    usage = total_usage(draft.usage for draft in made)
    return Totals(
        drafted=sum(draft.rule is not None for draft in made),
        repaired=sum(draft.repaired for draft in made),
        doubtful=sum(bool(draft.remarks) for draft in made),
        without=sum(draft.rule is None for draft in made),
        usage=usage,
        cost=None if prices is None else prices.of(usage),
        currency="" if prices is None else prices.currency,
        seconds=seconds,
    )
