"""The tokens of a call, estimated if the endpoint did not count them."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.errors import ChatErrorKind
from ragfilter.protocols import Message, Usage
from ragfilter.text.tokens import estimate

UNREAD: tuple[ChatErrorKind, ...] = ("unreachable", "auth", "rate_limit", "protocol")
"""Failures of a call whose prompt no model read, so that its tokens do not count."""


def tokens(messages: Sequence[Message]) -> int:
    """Estimated tokens of the messages."""
    return sum(estimate(message.content) for message in messages)


def estimated(asked: Sequence[Message], text: str, failed: str) -> Usage:
    """The estimated usage of a call with the messages `asked` that returned `text`. `failed` is how
    the endpoint failed (see ChatError), if it did."""
    # If anything was answered, the prompt was read.
    unread = failed in UNREAD and not text
    return Usage(0 if unread else tokens(asked), estimate(text), estimated=True)
