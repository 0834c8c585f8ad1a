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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from ragfilter.errors import ChatError, ChatErrorKind, SettingsError, check_version, extra
from ragfilter.text.urls import web_address

with extra("openai"):
    import httpx2
    import openai
    import packaging as packaging

check_version("openai", ">=3.16,<4", extra="openai")
check_version("httpx2", ">=2.12,<3", extra="openai")


DEFAULT_BASE_URL = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent where no key is set: local servers want none, and the client insists on one."""
DETAIL_CHARS = 300
MAX_WAIT_S = 86_400.0
"""A day. Nobody means to wait longer, whatever a header says."""
Failure = Literal[
    "late", "cut", "too long", "too large", "redirected", "filtered", "unfinished", "empty",
    "unreadable", "reported", "unreached",
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
    "reported": ("server", "The endpoint reported an error: {}.",
                 "Try again; the endpoint's own log says more."),
    "unreached": ("unreachable", "The endpoint {}.",
                  "Check that it runs and that the base URL is right."),
}  # fmt: skip
_KEY: tuple[ChatErrorKind, str, str] = (
    "auth", "refused the key", "Check OPENAI_API_KEY and that it may use this model."
)  # fmt: skip
_STATUSES: Mapping[int, tuple[ChatErrorKind, str, str]] = {
    400: ("protocol", "refused the request",
          "Check model and base URL; a prompt may also be too long for the model."),
    401: _KEY, 403: _KEY,
    404: ("protocol", "does not know the model {!r} or the address",
          "Check the model name, and that the base URL is right; most end in /v1."),
    408: ("timeout", "gave up waiting for the model", "Try again."),
    429: ("rate_limit", "has reached its rate limit or quota", "Check the quota."),
    500: ("server", "failed", "Try again."),
    504: ("timeout", "gave up waiting for the model", "Try again."),
}  # fmt: skip
_UNREACHED: Mapping[type[BaseException], str] = {
    socket.gaierror: "its name cannot be resolved",
    ssl.SSLError: "the TLS connection failed",
    ConnectionRefusedError: "it refused the connection",
    httpx2.TooManyRedirects: "it redirects again and again",
    httpx2.ConnectTimeout: "it did not accept a connection in time",
}


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
    if parts is None or parts.username or parts.password or parts.query or parts.fragment:
        # It would be shown in messages and logs.
        raise SettingsError(
            "The base URL of the endpoint is not an http or https address without credentials, "
            "query and fragment.",
            remedy="Put the key into OPENAI_API_KEY, and an address like http://127.0.0.1:8080/v1 "
            "into OPENAI_BASE_URL.",
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
    causes = list(_causes(error))
    ours = next((cause for cause in causes if isinstance(cause, ChatError)), None)
    if ours is not None:
        return ours
    if isinstance(error, openai.APIStatusError):
        return _status(error, at)
    if isinstance(error, openai.APITimeoutError) and not isinstance(
        error.__cause__, httpx2.ConnectTimeout
    ):
        return timed_out(timeout_s)
    if isinstance(error, openai.APIConnectionError):
        return _connection(error, causes, at, answered)
    if isinstance(error, openai.APIError):
        return failure("reported", _detail(error, at) or "without a message")
    # What remains is an answer that cannot be read. Its text may hold anything, so only the kind
    # of the error is told.
    return failure("unreadable", type(error).__name__)


def timed_out(timeout_s: float) -> ChatError:
    # What is left for a second call, or what a server asks for, is no round number.
    return failure("late", f"{max(round(timeout_s, 1), 0.1):g}")


def failure(name: Failure, detail: str = "") -> ChatError:
    """The failure of this name; `detail` completes its message."""
    kind, message, remedy = _FAILURES[name]
    return ChatError(message.format(detail), kind=kind, remedy=remedy)


def _status(error: openai.APIStatusError, at: Endpoint) -> ChatError:
    status, wait, detail = error.status_code, _retry_after(error), _detail(error, at)
    least = 500 if status >= 500 and status != 504 else status
    kind, what, remedy = _STATUSES.get(least, _STATUSES[400])
    # What refuses a key may hold a part of it.
    after = f": {detail}" if detail and kind != "auth" else ""
    remedy += f" Wait {max(round(wait, 1), 0.1):g} s." if wait is not None else ""
    message = f"The endpoint {what.format(at.model)} (HTTP {status}){after}."
    return ChatError(message, kind=kind, remedy=remedy, retry_after=wait)


def _connection(
    error: openai.APIConnectionError, causes: list[BaseException], at: Endpoint, answered: bool
) -> ChatError:
    def has(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    why = next((words for kind, words in _UNREACHED.items() if has(kind)), "")
    if not why and (answered or has(httpx2.ReadError)):
        return failure("cut")
    if not why and has(httpx2.RemoteProtocolError):
        # Only the text tells that the endpoint hung up before it answered.
        hung_up = "disconnected" in str(error.__cause__)
        return failure("cut") if hung_up else failure("unreadable", "not HTTP")
    return failure("unreached", f"{at.host} cannot be reached: {why or 'the connection failed'}")


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
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
