"""The undocumented parts of openai and httpx2 that we use, for tested releases only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragfilter.basics.extras import check_version, extra

with extra("openai"):
    import httpx2
    import openai
    import packaging as packaging
    from openai.types.chat import ChatCompletion

check_version("openai", ">=3.16,<4", extra="openai")
check_version("httpx2", ">=2.12,<3", extra="openai")


def replace_body(response: httpx2.Response, wrap: Callable[[Any], httpx2.SyncByteStream]) -> None:
    """Read the body through `wrap` from now on. Before anything was read of it, as in a hook."""
    response.stream = wrap(response.stream)


def body(stream: openai.Stream[Any]) -> object:
    """The body that `stream` is read from, as `replace_body` made it."""
    return stream.response.stream


def to_completion(data: dict[str, Any]) -> ChatCompletion:
    """A completion of whatever an endpoint sent, unchecked as in a stream."""
    return ChatCompletion.construct(**data)


def is_hang_up(error: openai.APIConnectionError) -> bool:
    """Whether the endpoint closed the connection before it answered; only the text tells."""
    return "disconnected" in str(error.__cause__)
