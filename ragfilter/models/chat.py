"""Chat over the OpenAI protocol, streamed, with one deadline for the whole call.

Source: docs/design.md#parts. The client's own timeouts are per read, and name resolution has none.
So a server that drips bytes could hold a caller for ever. The call therefore runs in its own
thread, and the caller waits for its pieces only until the deadline.
"""

from __future__ import annotations

import json
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragfilter.answer.reply import bounded
from ragfilter.basics.threads import check_stopped, patience
from ragfilter.errors import ChatError, extra
from ragfilter.models.endpoint import explain, failure, read_endpoint, timed_out
from ragfilter.protocols import Delta, Message, Usage

with extra("openai"):
    import httpx2
    import openai
    from openai.types.chat import ChatCompletion

log = logging.getLogger(__name__)

CONNECT_S = 5.0
MAX_BODY_BYTES = 32 * 1024 * 1024
"""Of one response: every few characters of an answer come in an envelope of hundreds of bytes."""
MAX_EVENT_BYTES = 2 * 1024 * 1024
MAX_TOKENS = 1_000_000_000
LINGER_S = 1.0
"""How long the usage is waited for, once the model has said that it is done."""
REFUSALS = (400, 404, 415, 422, 500, 501)
"""What servers answer that do not know a part of a request."""
_COMPLETE = ("stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete")
_TOO_LONG = ("length", "max_tokens", "model_length", "max_output_tokens")
_SCHEMA = re.compile(r"schema|response_format")
_MISSING = "the endpoint sent no chat completion"


class OpenAIChat:
    """A chat model at an OpenAI-compatible endpoint. Safe in threads; holds one HTTP client.

    Raises SettingsError for a base URL, key or model name that cannot be used. The key appears in
    no message, log line or repr.
    """

    def __init__(self, *, model: str, api_key: str = "", base_url: str = "") -> None:
        self._at = read_endpoint(model, api_key=api_key, base_url=base_url)
        self._refused: set[str] = set()
        self._call = threading.local()
        self._client = self._at.client(
            # What is compressed may be a thousand times as large when it is read.
            default_headers={"Accept-Encoding": "identity"},
            http_client=openai.DefaultHttpxClient(event_hooks={"response": [self._guard]}),
        )

    @property
    def name(self) -> str:
        return self._at.model

    @property
    def endpoint(self) -> str:
        """Its address, which holds no credentials."""
        return self._at.url.rstrip("/")

    def __repr__(self) -> str:
        return f"OpenAIChat(model={self._at.model!r}, base_url={self._at.url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def stream(
        self,
        messages: Sequence[Message],
        *,
        timeout_s: float,
        schema: Mapping[str, object] | None = None,
    ) -> Iterator[Delta]:
        """The answer in pieces; the last Delta carries the usage where the endpoint counted it.

        `timeout_s` bounds the whole call. `schema` asks for JSON of that shape; an endpoint that
        refuses that is asked again without. Raises ChatError, also after pieces have come.
        """
        deadline = time.monotonic() + timeout_s
        pieces: queue.SimpleQueue[Delta | ChatError | _Finished | None] = queue.SimpleQueue()
        stop = threading.Event()

        def work(schema: Mapping[str, object] | None) -> None:
            answered = said = False
            self._call.stop = stop
            try:
                # Closed at once, even if the answer is not read to its end.
                with self._open(messages, schema, deadline, stop) as response:
                    answered = True
                    for piece in bounded(_read(response, pieces.put)):
                        if time.monotonic() > deadline:
                            raise timed_out(timeout_s)
                        pieces.put(piece)
                        said = True
            except Exception as error:
                if (
                    schema
                    and answered
                    and not said
                    and _SCHEMA.search(getattr(error, "message", ""))
                ):
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
                left = max(0.0, until - time.monotonic())
                try:
                    # What has arrived in time is delivered, however late it is fetched.
                    piece = pieces.get(timeout=patience(left))
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
                    # Some servers give a reason with every piece.
                    finished, until = None, deadline
                    yield piece
                elif finished is None or piece.usage is not None:
                    yield piece
        finally:
            stop.set()

    def _open(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, object] | None,
        deadline: float,
        stop: threading.Event,
    ) -> openai.Stream[Any]:
        """The opened stream. Parts of the request that a server may not know are left out when it
        refuses them: the one that its message names, else the schema, then the other. They are not
        sent again by this client, so that the refusal is paid for once."""
        optional: dict[str, Any] = {}
        if schema is not None:
            shape = {"name": "answer", "schema": dict(schema), "strict": True}
            optional["response_format"] = {"type": "json_schema", "json_schema": shape}
        optional["stream_options"] = {"include_usage": True}
        optional = {part: value for part, value in optional.items() if part not in self._refused}
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
                # Where another fault is as likely (not 400 or 422), only the schema is tried.
                tried = list(optional) if error.status_code in (400, 422) else ["response_format"]
                part = blamed or next((each for each in tried if each in optional), "")
                if not part or error.status_code not in REFUSALS or stop.is_set():
                    raise
                log.info("%s refused %s; asked again without", self._at.model, part)
                left_out.append(part)
                del optional[part]

    def _guard(self, response: httpx2.Response) -> None:
        """Called with every response before anything is read of it. Raises ChatError."""
        response.stream = _Body(response.stream, self._call.stop)
        if response.has_redirect_location:
            there = response.url.join(response.headers["location"])
            if _origin(there) != _origin(response.url):
                raise failure("redirected", self._at.scrub("{}://{}:{}".format(*_origin(there))))
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            raise failure("unreadable", "it is compressed, which was not asked for")


@dataclass(frozen=True, slots=True)
class _Finished:
    """The model has said why it ended. `error`: in which way the answer is not whole."""

    error: ChatError | None


class _Body(httpx2.SyncByteStream):
    """A response body that ends once nobody waits for it, and knows whether anything came.

    A server that only sends keep-alive comments yields no event, and the client keeps to itself
    that a stream was declared done, so the bytes have to be watched. Raises ChatError if more
    comes than is read: of the whole, or without a blank line.
    """

    def __init__(self, body: Any, stop: threading.Event) -> None:
        self._body = body
        self._stop = stop
        self.received = False
        self.ended = False

    def __iter__(self) -> Iterator[bytes]:
        size = event = 0
        tail = b""
        for part in self._body:
            if self._stop.is_set():
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
        self._body.close()


_EVENT_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")
# An answer may speak of such a line, but only inside a JSON string, where no line can begin.
_DONE = re.compile(rb"(?:^|[\r\n])data: ?\[DONE\]")
_TAIL = 16
"""Bytes kept of what came before, in which a line or an event may have begun."""


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


def _read(response: openai.Stream[Any], finished: Callable[[_Finished], None]) -> Iterator[Delta]:
    """The pieces of an opened stream. Calls `finished` when the model says that it is done, since
    some servers keep the stream open. Raises ChatError if the answer is not whole."""
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
        text = _text(choice)
        if text:
            some_text = some_text or bool(text.strip())
            yield Delta(text)
        reason = str(getattr(choice, "finish_reason", None) or "").strip().lower()
        if reason:
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
    # Some servers end a stream in order without giving a reason.
    if not finish and not whole and not (isinstance(body, _Body) and body.ended):
        raise failure("cut")
    if error := _unfinished(finish, some_text=some_text):
        raise error


def _unfinished(finish: str, *, some_text: bool) -> ChatError | None:
    """Why an answer that ended for the reason `finish` is not whole; None if it is."""
    if finish == "content_filter":
        return failure("filtered")
    if finish in _TOO_LONG:
        return failure("too long")
    if finish and finish not in _COMPLETE:
        return failure("unfinished", finish if finish.isidentifier() else "unknown")
    return None if some_text else failure("empty", "an answer without text")


def _whole(response: openai.Stream[Any]) -> Any:
    """The one completion of a server that ignores `stream` and sends JSON."""
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
    part = getattr(choice, "delta", None) or getattr(choice, "message", None)
    content = getattr(part, "content", None)
    return "".join(map(_text_of, content if isinstance(content, list) else [content]))


def _text_of(part: object) -> str:
    """The text of a part of a message; empty if it is a thought, or anything else."""
    if isinstance(part, Mapping):
        says = (part.get("type") or "text") in ("text", "output_text") and not part.get("thought")
        part = part.get("text") if says else None
    return part if isinstance(part, str) else ""


def _usage(value: Any) -> Usage | None:
    """The counts of an endpoint, if they can be."""
    counts = [getattr(value, name, None) for name in ("prompt_tokens", "completion_tokens")]
    possible = all(type(count) is int and 0 <= count <= MAX_TOKENS for count in counts)
    return Usage(*counts) if possible else None  # type: ignore[arg-type]
