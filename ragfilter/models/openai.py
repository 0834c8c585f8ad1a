"""Models over the OpenAI protocol: streamed chat, and embeddings. The address and the key are
checked once, and every failure there is a ChatError with a remedy.

The client's own timeouts are per read, and name resolution has none, so a server that drips bytes could hold a caller
forever. A call therefore runs in its own thread, and the caller waits for its pieces only until the deadline. If an
endpoint refuses a key, its message is never repeated, since it may contain a part of the key. Undocumented behaviour of
openai and httpx2 is used only in tested releases. Source: docs/design.md#parts."""

from __future__ import annotations

import json
import logging
import queue
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from ragfilter.basics.threads import check_stopped, patience, within
from ragfilter.errors import ChatError, ChatErrorKind, ModelError, SettingsError, check_version, extra
from ragfilter.models.chat import bounded
from ragfilter.models.embedders import BATCH, OPENAI
from ragfilter.protocols import Delta, Message, Usage, Vectors
from ragfilter.text.normalise import mend_characters
from ragfilter.text.urls import web_address

with extra("openai"):
    import httpx2
    import openai
    import packaging as packaging
    from openai.types.chat import ChatCompletion

log = logging.getLogger(__name__)

check_version("openai", ">=3.16,<4", extra="openai")
check_version("httpx2", ">=2.12,<3", extra="openai")

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DETAIL_CHARS = 300
MAX_WAIT_S = 86_400.0
"""One day. Nobody wants to wait longer, whatever a header says."""
_URL = "Check that the base URL belongs to an OpenAI-compatible API; most end in /v1."
_FAILURES: Mapping[str, tuple[ChatErrorKind, str, str]] = {
    "late": (
        "timeout",
        "The endpoint did not finish its answer within {} s.",
        "Raise the timeout, or choose a faster model.",
    ),
    "cut": ("interrupted", "The endpoint closed the connection before the answer was complete.", "Try again."),
    "too long": (
        "interrupted",
        "The answer stops where the model's length limit was reached.",
        "Lower the context budget, or choose a model with a longer context.",
    ),
    "too large": ("interrupted", "The endpoint sent more than an answer can hold; the rest was not read.", _URL),
    "redirected": (
        "protocol",
        "The endpoint redirects to another address, {}; the prompt was not sent there.",
        "If you trust that address, put it into OPENAI_BASE_URL.",
    ),
    "filtered": ("interrupted", "The endpoint's content filter stopped the answer.", "Rephrase the question."),
    "unfinished": (
        "interrupted",
        "The answer ended before it was complete (reason: {:.40}).",
        "Try again, or choose another model.",
    ),
    "empty": ("empty", "The endpoint sent {}.", "Try again."),
    "unreadable": ("protocol", "The endpoint's answer cannot be read ({}).", _URL),
    "reported": ("server", "The endpoint reported an error: {}.", "Try again; the endpoint's own log says more."),
    "unreached": ("unreachable", "The endpoint {}.", "Check that it runs and that the base URL is right."),
}
_KEY: tuple[ChatErrorKind, str, str] = (
    "auth",
    "refused the key",
    "Check OPENAI_API_KEY and that it can use this model.",
)
_STATUSES: Mapping[int, tuple[ChatErrorKind, str, str]] = {
    400: ("protocol", "refused the request", "Check model and base URL; a prompt may also be too long for the model."),
    401: _KEY,
    403: _KEY,
    404: (
        "protocol",
        "does not know the model {!r} or the address",
        "Check the model name, and that the base URL is right; most end in /v1.",
    ),
    408: ("timeout", "gave up waiting for the model", "Try again."),
    429: ("rate_limit", "has reached its rate limit or quota", "Check the quota."),
    500: ("server", "failed", "Try again."),
    504: ("timeout", "gave up waiting for the model", "Try again."),
}
_UNREACHED: Mapping[type[BaseException], str] = {
    socket.gaierror: "its name cannot be resolved",
    ssl.SSLError: "the TLS connection failed",
    ConnectionRefusedError: "it refused the connection",
    httpx2.TooManyRedirects: "it redirects again and again",
    httpx2.ConnectTimeout: "it did not accept a connection in time",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The endpoint of a model. Its key appears in no message, log line or repr."""

    model: str
    url: str
    key: str = field(repr=False)

    def client(self, **options: Any) -> openai.OpenAI:
        """A client without retries."""
        # Local servers need no key, but the client insists on one.
        return openai.OpenAI(api_key=self.key or "none", base_url=self.url, max_retries=0, **options)

    def scrub(self, text: str) -> str:
        """`text` without the key."""
        # Regardless of case, since host names become lower case.
        return re.sub(re.escape(self.key), "***", text, flags=re.IGNORECASE) if self.key else text


def read_endpoint(model: str, *, api_key: str, base_url: str) -> Endpoint:
    """The endpoint that these settings name. Raises SettingsError for an unusable value."""
    if not model.strip():
        raise SettingsError("No model is named.", remedy="Set OPENAI_MODEL.")
    url = base_url.strip() or DEFAULT_BASE_URL
    parts = web_address(url)
    if parts is None or parts.username or parts.password or parts.query or parts.fragment:
        # Messages and logs would show them.
        what = "The endpoint's base URL must be an http or https address without credentials, query or fragment."
        remedy = "Put the key into OPENAI_API_KEY, and an address like http://127.0.0.1:8080/v1 into OPENAI_BASE_URL."
        raise SettingsError(what, remedy=remedy)
    key = api_key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        remedy = "Copy OPENAI_API_KEY again, without quotes and line breaks."
        raise SettingsError("OPENAI_API_KEY contains invalid characters.", remedy=remedy)
    return Endpoint(model.strip(), url, key)


def explain(error: Exception, at: Endpoint, *, answered: bool, timeout_s: float) -> ChatError:
    """Convert an `error` of the openai client to a ChatError. `answered`: a response had begun."""
    causes = list(_causes(error))
    ours = next((cause for cause in causes if isinstance(cause, ChatError)), None)
    if ours is not None:
        return ours
    if isinstance(error, openai.APIStatusError):
        return _status(error, at)
    unconnected = isinstance(error.__cause__, httpx2.ConnectTimeout)
    if isinstance(error, openai.APITimeoutError | TimeoutError) and not unconnected:
        return timed_out(timeout_s)
    if isinstance(error, openai.APIConnectionError):
        return _connection(error, causes, at, answered=answered)
    if isinstance(error, openai.APIError):
        return failure("reported", _detail(error, at) or "without a message")
    # An unreadable answer. Its text may contain anything, so the message names only the error's type.
    return failure("unreadable", type(error).__name__)


def timed_out(timeout_s: float) -> ChatError:
    # The time left for a second call, or the time a server asks for, is not a round number.
    return failure("late", f"{max(round(timeout_s, 1), 0.1):g}")


def failure(name: str, detail: str = "") -> ChatError:
    """The failure of this name; `detail` completes its message."""
    kind, message, remedy = _FAILURES[name]
    return ChatError(message.format(detail), kind=kind, remedy=remedy)


def _status(error: openai.APIStatusError, at: Endpoint) -> ChatError:
    status, wait, detail = error.status_code, _retry_after(error), _detail(error, at)
    least = 500 if status >= 500 and status != 504 else status
    kind, what, remedy = _STATUSES.get(least, _STATUSES[400])
    # A message that refuses a key may contain a part of it.
    after = f": {detail}" if detail and kind != "auth" else ""
    remedy += f" Wait {max(round(wait, 1), 0.1):g} s." if wait is not None else ""
    message = f"The endpoint {what.format(at.model)} (HTTP {status}){after}."
    return ChatError(message, kind=kind, remedy=remedy, retry_after=wait)


def _connection(error: Exception, causes: list[BaseException], at: Endpoint, *, answered: bool) -> ChatError:
    def has(kind: type[BaseException]) -> bool:
        return any(isinstance(cause, kind) for cause in causes)

    why = next((words for kind, words in _UNREACHED.items() if has(kind)), "")
    # Only the text shows that the endpoint hung up before it answered.
    if not why and (answered or has(httpx2.ReadError) or "disconnected" in str(error.__cause__)):
        return failure("cut")
    if not why and has(httpx2.RemoteProtocolError):
        return failure("unreadable", "not HTTP")
    return failure("unreached", f"{urlsplit(at.url).netloc} cannot be reached: {why or 'the connection failed'}")


def _detail(error: openai.APIError, at: Endpoint) -> str:
    """The endpoint's own message on one line, shortened; empty if it sent only a web page."""
    message = error.body
    for name in ("error", "message"):
        message = message.get(name, message) if isinstance(message, dict) else message
    if not isinstance(message, str) or message.lstrip().startswith("<"):
        return ""
    line = at.scrub("".join(c for c in " ".join(message.split()) if c.isprintable())).rstrip(".")
    return line if len(line) <= DETAIL_CHARS else f"{line[:DETAIL_CHARS]}…"


def _retry_after(error: openai.APIStatusError) -> float | None:
    """The seconds in the Retry-After header; None if it is missing, implausible or a date."""
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds <= MAX_WAIT_S else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    if cause := error.__cause__ or error.__context__:
        yield from _causes(cause)


# -- chat ------------------------------------------------------------------------------------------

CONNECT_S = 5.0
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Maximum size of a response: every few characters of an answer come with hundreds of bytes."""
MAX_EVENT_BYTES = 2 * 1024 * 1024
MAX_TOKENS = 1_000_000_000
LINGER_S = 1.0
"""How long to wait for the usage after the model has said that it is done."""
REFUSALS = (400, 404, 415, 422, 500, 501)
"""Status codes of servers that do not know a part of a request."""
_COMPLETE = ("stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete")
_TOO_LONG = ("length", "max_tokens", "model_length", "max_output_tokens")
_SCHEMA = re.compile(r"schema|response_format")
_MISSING = "the endpoint sent no chat completion"


class OpenAIChat:
    """A chat model at an OpenAI-compatible endpoint. Thread-safe; holds one HTTP client. Raises SettingsError for an
    unusable base URL, key or model name. The key appears in no message, log line or repr."""

    def __init__(self, *, model: str, api_key: str = "", base_url: str = "") -> None:
        self._at = read_endpoint(model, api_key=api_key, base_url=base_url)
        self.name = self._at.model
        # Without credentials.
        self.endpoint = self._at.url.rstrip("/")
        self._refused: set[str] = set()
        self._call = threading.local()
        self._client = self._at.client(
            # A compressed response can be a thousand times as large after decompression.
            default_headers={"Accept-Encoding": "identity"},
            http_client=openai.DefaultHttpxClient(event_hooks={"response": [self._guard]}),
        )

    def __repr__(self) -> str:
        return f"OpenAIChat(model={self._at.model!r}, base_url={self._at.url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def stream(
        self, messages: Sequence[Message], *, timeout_s: float, schema: Mapping[str, object] | None = None
    ) -> Iterator[Delta]:
        """Yield the answer in pieces; the last Delta has the usage if the endpoint counted it. `timeout_s` limits the
        whole call. `schema` asks for JSON of that schema; if the endpoint refuses it, the call is repeated without.
        Raises ChatError, even after some pieces."""
        deadline = time.monotonic() + timeout_s
        pieces: queue.SimpleQueue[Delta | ChatError | _Finished | None] = queue.SimpleQueue()
        stop = threading.Event()

        def work(schema: Mapping[str, object] | None) -> None:
            answered = has_text = False
            self._call.stop = stop
            try:
                # The `with` closes the response even if the caller stops reading.
                with self._open(messages, schema, deadline, stop) as response:
                    answered = True
                    for piece in bounded(_read(response, pieces.put)):
                        if time.monotonic() > deadline:
                            raise timed_out(timeout_s)
                        pieces.put(piece)
                        has_text = True
            except Exception as error:
                refused = answered and not has_text
                if schema and refused and _SCHEMA.search(getattr(error, "message", "")):
                    self._refused.add("response_format")
                    return work(None)
                pieces.put(explain(error, self._at, answered=answered, timeout_s=timeout_s))
            else:
                pieces.put(None)

        threading.Thread(target=work, args=(schema,), name="ragfilter-chat", daemon=True).start()
        finished: _Finished | None = None
        until = deadline
        try:
            while True:
                try:
                    # Pieces that arrived in time are delivered, even if they are read late.
                    piece = pieces.get(timeout=patience(max(0.0, until - time.monotonic())))
                except queue.Empty:
                    check_stopped()
                    if until > time.monotonic():
                        continue
                    if finished is None:
                        raise timed_out(timeout_s) from None
                    piece = finished.error
                if isinstance(piece, _Finished):
                    if finished is None:
                        until = min(deadline, time.monotonic() + LINGER_S)
                    finished = piece
                elif piece is None:
                    return
                elif isinstance(piece, ChatError):
                    raise piece
                elif piece.text.strip():
                    # Some servers send a finish reason with every piece.
                    finished, until = None, deadline
                    yield piece
                elif finished is None or piece.usage is not None:
                    yield piece
        finally:
            stop.set()

    def _open(
        self, messages: Sequence[Message], schema: Mapping[str, object] | None, deadline: float, stop: threading.Event
    ) -> openai.Stream[Any]:
        """Open the stream. If the server refuses an optional part of the request, leaves it out: the part that the
        message names, or else the schema, then the other one. This client never sends that part again."""
        shape = {"name": "answer", "schema": schema, "strict": True}
        optional: dict[str, Any] = {
            "response_format": {"type": "json_schema", "json_schema": shape} if schema else None,
            "stream_options": {"include_usage": True},
        }
        optional = {part: value for part, value in optional.items() if value and part not in self._refused}
        left_out: list[str] = []
        sent: Any = [{"role": m.role, "content": m.content} for m in messages]
        while True:
            left = max(0.001, deadline - time.monotonic())
            try:
                opened: openai.Stream[Any] = self._client.chat.completions.create(
                    model=self._at.model,
                    messages=sent,
                    stream=True,
                    timeout=httpx2.Timeout(left, connect=min(left, CONNECT_S)),
                    **optional,
                )
                self._refused.update(left_out)
                return opened
            except openai.APIStatusError as error:
                reply = f"{error.message} {error.body}"
                blamed = next((part for part in optional if part in reply), "")
                # If another cause is as likely (not 400 or 422), leave out only the schema.
                tried = list(optional) if error.status_code in (400, 422) else ["response_format"]
                part = blamed or next((each for each in tried if each in optional), "")
                if not part or error.status_code not in REFUSALS or stop.is_set():
                    raise
                log.info("%s refused %s; asked again without it", self._at.model, part)
                left_out.append(part)
                del optional[part]

    def _guard(self, response: httpx2.Response) -> None:
        """Check every response before its body is read. Raises ChatError."""
        response.stream = _Body(response.stream, self._call.stop)
        if response.has_redirect_location:
            redirect = response.url.join(response.headers["location"])
            if _origin(redirect) != _origin(response.url):
                raise failure("redirected", self._at.scrub("{}://{}:{}".format(*_origin(redirect))))
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            raise failure("unreadable", "it is compressed, which was not asked for")


_EVENT_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")
# An answer can mention such a line, but only inside a JSON string, which has no line breaks.
_DONE = re.compile(rb"[\r\n]data: ?\[DONE\]")
_TAIL = 16
"""Number of earlier bytes in which a line or an event may have begun."""


@dataclass(frozen=True, slots=True)
class _Finished:
    """The model has said why it finished. `error` says why the answer is incomplete, if it is."""

    error: ChatError | None


@dataclass(eq=False)
class _Body(httpx2.SyncByteStream):
    """A response body that ends once nobody waits for it, and knows whether it received anything. Keep-alive comments
    yield no event, and the client does not report that a stream was declared done, so this class inspects the bytes.
    Raises ChatError if the body, or a part of it without a blank line, is too large."""

    body: Any
    stop: threading.Event
    received: bool = False
    ended: bool = False

    def __iter__(self) -> Iterator[bytes]:
        size = event = 0
        tail = b"\n"
        for part in self.body:
            if self.stop.is_set():
                return
            self.received = self.received or bool(part.strip())
            size += len(part)
            seen = tail + part
            self.ended = self.ended or _DONE.search(seen) is not None
            blank = max(seen.rfind(end) for end in _EVENT_ENDS)
            event = len(seen) - blank if blank >= 0 else event + len(part)
            if size > MAX_BODY_BYTES or event > MAX_EVENT_BYTES:
                raise failure("too large")
            tail = seen[-_TAIL:]
            yield part

    def close(self) -> None:
        self.body.close()


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


def _read(response: openai.Stream[Any], finished: Callable[[_Finished], None]) -> Iterator[Delta]:
    """Yield the pieces of an opened stream. Calls `finished` when the model says that it is done,
    since some servers keep the stream open. Raises ChatError if the answer is incomplete."""
    body = response.response.stream
    kind = response.response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml"):
        response.close()
        raise failure("unreadable", f"{kind} instead of an event stream")
    whole = kind.endswith("json")
    events: Iterator[Any] = iter([_whole(response)]) if whole else iter(response)
    finish = ""
    some_text = some_event = False
    usage: Usage | None = None
    for event in events:
        if getattr(event, "object", None) == "error":
            raise openai.APIError("error", response.response.request, body=event.model_dump())
        choices = getattr(event, "choices", None)
        some_event = some_event or isinstance(choices, list)
        choice = choices[0] if isinstance(choices, list) and choices else None
        usage = _usage(getattr(event, "usage", None)) or usage
        if text := _text(choice):
            some_text = some_text or bool(text.strip())
            yield Delta(text)
        if reason := str(getattr(choice, "finish_reason", None) or "").strip().lower():
            finish = reason
            finished(_Finished(_unfinished(finish, some_text=some_text)))
        if finish and usage is not None:
            yield Delta(usage=usage)
            usage = None
    if usage is not None:
        yield Delta(usage=usage)
    if isinstance(body, _Body) and not body.received:
        raise failure("empty", "nothing")
    if not some_event:
        raise failure("unreadable", _MISSING)
    # Some servers end a stream properly without a finish reason.
    if not finish and not whole and not (isinstance(body, _Body) and body.ended):
        raise failure("cut")
    if error := _unfinished(finish, some_text=some_text):
        raise error


def _unfinished(finish: str, *, some_text: bool) -> ChatError | None:
    """The error for an answer with the finish reason `finish`; None if it is complete."""
    if finish == "content_filter":
        return failure("filtered")
    if finish in _TOO_LONG:
        return failure("too long")
    if finish and finish not in _COMPLETE:
        return failure("unfinished", finish if finish.isidentifier() else "unknown")
    return None if some_text else failure("empty", "an answer without text")


def _whole(response: openai.Stream[Any]) -> Any:
    """The completion from a server that ignores `stream` and sends plain JSON."""
    raw = response.response.read()
    if not raw.strip():
        raise failure("empty", "nothing")
    if len(raw) > MAX_EVENT_BYTES:
        raise failure("too large")
    data = json.loads(raw)
    if not isinstance(data, dict):
        raise failure("unreadable", _MISSING)
    if data.get("error"):
        raise openai.APIError("error", response.response.request, body=data["error"])
    return ChatCompletion.construct(**data)  # Unchecked, as in a stream.


def _text(choice: Any) -> str:
    message = getattr(choice, "delta", None) or getattr(choice, "message", None)
    content = getattr(message, "content", None)
    texts: list[object] = []
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, Mapping):
            texts.append(part)
        # A part can also be a thought or an image.
        elif (part.get("type") or "text") in ("text", "output_text") and not part.get("thought"):
            texts.append(part.get("text"))
    return "".join(text for text in texts if isinstance(text, str))


def _usage(value: Any) -> Usage | None:
    """The endpoint's token counts, if they are plausible."""
    counts = [getattr(value, name, None) for name in ("prompt_tokens", "completion_tokens")]
    possible = all(type(count) is int and 0 <= count <= MAX_TOKENS for count in counts)
    return Usage(*counts) if possible else None  # type: ignore[arg-type]


# -- embeddings ------------------------------------------------------------------------------------

MAX_CHARS = 20_000
"""Maximum length of a text; models read about 8,000 tokens and refuse longer texts."""
TIMEOUT_S = 60.0


class OpenAIEmbedder:
    """Unit vectors from an endpoint. Thread-safe; holds one HTTP client. Raises SettingsError as `OpenAIChat` does."""

    def __init__(self, model: str, *, api_key: str = "", base_url: str = "", timeout_s: float = TIMEOUT_S) -> None:
        """`model` is the endpoint's name for the model; `timeout_s` limits each call."""
        self._at = read_endpoint(model, api_key=api_key, base_url=base_url)
        self.name = f"{OPENAI}{self._at.model}"
        self._timeout_s = timeout_s
        # The texts are sent to no other address.
        self._client = self._at.client(http_client=openai.DefaultHttpxClient(follow_redirects=False))

    def prepare(self) -> None:
        """There is nothing to load."""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32) of `texts`, shape (len(texts), dimension). Raises ModelError."""
        parts: list[Vectors] = []
        for start in range(0, len(texts), BATCH):
            parts.append(self._ask([mend_characters(text[:MAX_CHARS]) or " " for text in texts[start : start + BATCH]]))
        try:
            return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
        except ValueError:
            raise self._unusable("vectors of different lengths") from None

    def _ask(self, batch: list[str]) -> Vectors:
        try:
            create, timeout_s = self._client.embeddings.create, self._timeout_s
            request: dict[str, Any] = {"model": self._at.model, "input": batch, "encoding_format": "float"}
            answer: Any = within(timeout_s, lambda: create(**request, timeout=timeout_s))
            rows = sorted(answer.data, key=lambda row: row.index)
            vectors = np.asarray([row.embedding for row in rows], dtype=np.float32)
        except (AttributeError, TypeError, ValueError):
            raise self._unusable("no embeddings") from None
        except Exception as error:
            why = explain(error, self._at, answered=False, timeout_s=self._timeout_s)
            raise ModelError(f"The embedding model {self.name} failed: {why.message}", remedy=why.remedy) from None
        if vectors.ndim != 2 or len(vectors) != len(batch):
            raise self._unusable(f"{len(vectors)} vectors for {len(batch)} texts")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._unusable("a vector that is zero or not finite")
        unit: Vectors = vectors / lengths
        return unit

    def _unusable(self, what: str) -> ModelError:
        message = f"The endpoint gave {what} for the embedding model {self._at.model}."
        return ModelError(message, remedy="Check that it serves /embeddings for this model; most base URLs end in /v1.")
