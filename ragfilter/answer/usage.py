"""The tokens of a call, estimated if the endpoint did not count them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragfilter.errors import ChatErrorKind
from ragfilter.protocols import Message, Usage
from ragfilter.text.tokens import estimate

UNREAD: tuple[ChatErrorKind, ...] = ("unreachable", "auth", "rate_limit", "protocol")
"""Failures of a call whose prompt no model read, so that its tokens do not count."""


def tokens(messages: Sequence[Message]) -> int:
    """Estimated tokens of the messages."""
    return sum(estimate(message.content) for message in messages)


def total(usages: Iterable[Usage]) -> Usage:
    """The sum. A call for which nothing was sent does not make it an estimate."""
    used = [each for each in usages if each.prompt_tokens or each.completion_tokens]
    return Usage(
        sum(each.prompt_tokens for each in used),
        sum(each.completion_tokens for each in used),
        estimated=any(each.estimated for each in used),
    )


def estimated(asked: Sequence[Message], text: str, failed: str) -> Usage:
    """The estimated usage of a call with the messages `asked` that returned `text`. `failed` is how
    the endpoint failed (see ChatError), if it did."""
    # If anything was answered, the prompt was read.
    unread = failed in UNREAD and not text
    return Usage(0 if unread else tokens(asked), estimate(text), estimated=True)
