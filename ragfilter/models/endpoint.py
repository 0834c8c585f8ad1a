"""A model at an OpenAI-compatible endpoint: its name, address and key, checked once, and everything
that can go wrong there, as a ChatError with a remedy.

Nothing here repeats an endpoint's message when it refuses a key, since that may contain a part of
the key. What openai and httpx2 do not document is used for tested releases only. Source:
docs/design.md#parts.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from ragfilter.errors import ChatError, ChatErrorKind, SettingsError, check_version, extra
from ragfilter.text.urls import web_address

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


def body_of(stream: openai.Stream[Any]) -> object:
    """The body that `stream` is read from, as `replace_body` made it."""
    return stream.response.stream


def to_completion(data: dict[str, Any]) -> ChatCompletion:
    """A completion of whatever an endpoint sent, unchecked as in a stream."""
    return ChatCompletion.construct(**data)


def is_hang_up(error: openai.APIConnectionError) -> bool:
    """Whether the endpoint closed the connection before it answered; only the text tells."""
    return "disconnected" in str(error.__cause__)


DEFAULT_BASE_URL = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent where no key is set: local servers want none, and the client insists on one."""
DETAIL_CHARS = 300
MAX_WAIT_S = 86_400.0
"""A day. Nobody means to wait longer, whatever a header says."""
Failure = Literal[
    "late", "cut", "too long", "too large", "redirected", "filtered", "unfinished", "empty",
    "unreadable",
]  # fmt: skip

_URL = "Check that the base URL belongs to an OpenAI-compatible API; most end in /v1."
_FAILURES: Mapping[Failure, tuple[ChatErrorKind, str, str]] = {
    "late": ("timeout", "The endpoint did not finish its answer within {} s.",
             "Raise the timeout, or choose a faster model."),
    "cut": ("interrupted", "The endpoint closed the connection before the answer was complete.",
            "Try again."),
    "too long": ("interrupted",
                 "The answer stops where the model's length limit was reached.",
                 "Lower the context budget, or choose a model with a longer context."),
    "too large": ("interrupted",
                  "The endpoint sent more than an answer can hold; the rest was not read.", _URL),
    "redirected": ("protocol",
                   "The endpoint redirects to another address, {}; the prompt was not sent there.",
                   "If you trust that address, put it into OPENAI_BASE_URL."),
    "filtered": ("interrupted", "The endpoint's content filter stopped the answer.",
                 "Rephrase the question."),
    "unfinished": ("interrupted", "The answer ended before it was complete (reason: {:.40}).",
                   "Try again, or choose another model."),
    "empty": ("empty", "The endpoint sent {}.", "Try again."),
    "unreadable": ("protocol", "The endpoint's answer cannot be read ({}).", _URL),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked. The key appears in no message, log line or repr."""

    model: str
    url: str
    key: str = field(repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def client(self, **options: Any) -> openai.OpenAI:
        """A client that tries once."""
        return openai.OpenAI(
            api_key=self.key or NO_KEY, base_url=self.url, max_retries=0, **options
        )

    def scrub(self, text: str) -> str:
        """`text` without the key."""
        # In any case, since a host's name is in lower case.
        return re.sub(re.escape(self.key), "***", text, flags=re.IGNORECASE) if self.key else text


def read_endpoint(model: str, *, api_key: str, base_url: str) -> Endpoint:
    """The endpoint that these settings name. Raises SettingsError for what cannot be used."""
    if not model.strip():
        raise SettingsError("No model is named.", remedy="Set OPENAI_MODEL.")
    url = base_url.strip() or DEFAULT_BASE_URL
    parts = web_address(url)
    if parts is None:
        raise SettingsError(
            "The base URL of the endpoint is not an http or https address.",
            remedy="Set OPENAI_BASE_URL to an address like http://127.0.0.1:8080/v1.",
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        # It would be shown in messages and logs.
        raise SettingsError(
            "The base URL of the endpoint contains credentials, a query or a fragment.",
            remedy="Put the key into OPENAI_API_KEY and the bare address into OPENAI_BASE_URL.",
        )
    key = api_key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(
            "OPENAI_API_KEY contains invalid characters.",
            remedy="Copy OPENAI_API_KEY again, without quotes and line breaks.",
        )
    return Endpoint(model.strip(), url, key)


def explain(error: Exception, at: Endpoint, *, answered: bool, timeout_s: float) -> ChatError:
    """`error` of the openai client as a ChatError. `answered`: a response had begun."""
    ours = next((cause for cause in _causes(error) if isinstance(cause, ChatError)), None)
    if ours is not None:
        return ours
    if isinstance(error, openai.APIStatusError):
        return _status(error, at.model, _detail(error, at))
    if isinstance(error, openai.APITimeoutError):
        if isinstance(error.__cause__, httpx2.ConnectTimeout):
            return _unreachable(at.host, "it did not accept a connection in time")
        return timed_out(timeout_s)
    if isinstance(error, openai.APIConnectionError):
        return _connection(error, at.host, answered)
    if isinstance(error, openai.APIError):
        detail = _detail(error, at) or "without a message"
        return ChatError(
            f"The endpoint reported an error: {detail}.",
            kind="server",
            remedy="Try again; the endpoint's own log says more.",
        )
    # What remains is an answer that cannot be read. Its text may hold anything, so only the kind
    # of the error is told.
    return failure("unreadable", type(error).__name__)


def timed_out(timeout_s: float) -> ChatError:
    return failure("late", _seconds(timeout_s))


def _seconds(seconds: float) -> str:
    # What is left for a second call, or what a server asks for, is no round number.
    return f"{max(round(seconds, 1), 0.1):g}"


def failure(name: Failure, detail: str = "") -> ChatError:
    """The failure of this name; `said` completes its message."""
    kind, message, remedy = _FAILURES[name]
    return ChatError(message.format(detail), kind=kind, remedy=remedy)


def _status(error: openai.APIStatusError, model: str, detail: str) -> ChatError:
    status = error.status_code
    after = f": {detail}" if detail else ""
    wait = _retry_after(error)
    kind: ChatErrorKind = "protocol"
    what = f"refused the request (HTTP {status}){after}"
    remedy = "Check model and base URL; a prompt may also be too long for the model."
    if status in (401, 403):
        # What it says may hold a part of the key.
        kind, what = "auth", f"refused the key (HTTP {status})"
        remedy = "Check OPENAI_API_KEY and that it may use this model."
    elif status == 429:
        kind, what = "rate_limit", f"has reached its rate limit or quota (HTTP 429){after}"
        remedy = "Wait, or check the quota." if wait is None else f"Wait {_seconds(wait)} s."
    elif status == 404:
        what = f"does not know the model {model!r} or the address (HTTP 404){after}"
        remedy = "Check the model name, and that the base URL is right; most end in /v1."
    elif status in (408, 504):
        kind, what = "timeout", f"gave up waiting for the model (HTTP {status}){after}"
        remedy = "Try again."
    elif status >= 500:
        kind, what = "server", f"failed (HTTP {status}){after}"
        remedy = "Try again." if wait is None else f"Try again in {_seconds(wait)} s."
    return ChatError(f"The endpoint {what}.", kind=kind, remedy=remedy, retry_after=wait)


def _connection(error: openai.APIConnectionError, host: str, answered: bool) -> ChatError:
    causes = list(_causes(error))
    for kind, why in (
        (socket.gaierror, "its name cannot be resolved"),
        (ssl.SSLError, "the TLS connection failed"),
        (ConnectionRefusedError, "it refused the connection"),
        (httpx2.TooManyRedirects, "it redirects again and again"),
    ):
        if any(isinstance(cause, kind) for cause in causes):
            return _unreachable(host, why)
    if answered or any(isinstance(cause, httpx2.ReadError) for cause in causes):
        return failure("cut")
    if any(isinstance(cause, httpx2.RemoteProtocolError) for cause in causes):
        return failure("cut") if is_hang_up(error) else failure("unreadable", "not HTTP")
    return _unreachable(host, "the connection failed")


def _unreachable(host: str, why: str) -> ChatError:
    return ChatError(
        f"The endpoint {host} cannot be reached: {why}.",
        kind="unreachable",
        remedy="Check that it runs and that the base URL is right.",
    )


def _detail(error: openai.APIError, at: Endpoint) -> str:
    """The endpoint's own message on one line, shortened; empty if it gave none but a page."""
    body = error.body
    message = body.get("error", body) if isinstance(body, dict) else body
    message = message.get("message") if isinstance(message, dict) else message
    if not isinstance(message, str) or message.lstrip().startswith("<"):
        return ""
    line = at.scrub("".join(c for c in " ".join(message.split()) if c.isprintable())).rstrip(".")
    return line if len(line) <= DETAIL_CHARS else f"{line[:DETAIL_CHARS]}…"


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds of the Retry-After header. None if it is missing, implausible or a date."""
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds <= MAX_WAIT_S else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
