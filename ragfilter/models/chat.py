"""Asks a chat model and reads its reply: in whole characters, up to a maximum size, without its
thoughts, and with its token usage. Stores replies.

Models can send anything over the protocol, so every caller reads through this module."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from functools import cached_property
from hashlib import sha256
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from ragfilter.errors import ChatError, ChatErrorKind, RagfilterError
from ragfilter.protocols import ChatModel, Delta, Message, ReplyStore, Usage
from ragfilter.text.normalise import ends_in_half, mend_characters
from ragfilter.text.shared_words import estimate_tokens

T = TypeVar("T")

MAX_BYTES = 128 * 1024  # of a reply; answers take a few thousand bytes, or 100,000 with thoughts
UNREAD: tuple[ChatErrorKind, ...] = ("unreachable", "auth", "rate_limit", "protocol")
"""Failures in which no model read the prompt, so that its tokens do not count."""


def prompt_tokens(messages: Sequence[Message]) -> int:
    """Estimated tokens of the messages."""
    return sum(estimate_tokens(message.content) for message in messages)


def estimated_usage(messages: Sequence[Message], text: str, failed: str) -> Usage:
    """Estimate the usage of a call that returned `text`. `failed` is the kind of its ChatError; empty if it worked."""
    # If there is any answer, the model read the prompt.
    unread = failed in UNREAD and not text
    return Usage(0 if unread else prompt_tokens(messages), estimate_tokens(text), estimated=True)


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Add up the usages. A call that used no tokens does not make the sum an estimate."""
    used = [each for each in usages if each.prompt_tokens or each.completion_tokens]
    prompt, completion = sum(each.prompt_tokens for each in used), sum(each.completion_tokens for each in used)
    return Usage(prompt, completion, any(each.estimated for each in used))


class Reply(NamedTuple):
    """A model's whole answer with its thoughts, or its failure: in words, and as `ChatError.kind` or else ``model``."""

    text: str
    usage: Usage
    error: str = ""
    failed: ChatErrorKind | Literal["", "model"] = ""


def ask_model(chat: ChatModel, messages: Sequence[Message], *, timeout_s: float, schema: Mapping[str, object]) -> Reply:
    """Make one call and read its whole answer. Never raises."""
    pieces: list[str] = []
    usage: Usage | None = None
    error = ""
    failed: ChatErrorKind | Literal["", "model"] = ""
    try:
        for delta in bounded(chat.stream(messages, timeout_s=timeout_s, schema=schema)):
            pieces.append(delta.text)
            usage = delta.usage or usage
    except RagfilterError as failure:
        error, failed = str(failure), failure.kind if isinstance(failure, ChatError) else "model"
    except Exception as failure:
        # A third-party model may fail with anything, and its message may contain secrets.
        error, failed = f"the model failed ({type(failure).__name__})", "model"
    text = "".join(pieces)
    return Reply(text, usage or estimated_usage(messages, text, failed), error, failed)


class StoredReplies(Generic[T]):
    """The parsed replies of `endpoint`, as values of the type `kind`, by request. Every key in
    `replies` begins with `name`; without `replies`, nothing is stored."""

    def __init__(self, name: str, kind: Any, replies: ReplyStore | None, endpoint: str) -> None:
        self._name, self._kind, self._replies, self._endpoint = name, kind, replies, endpoint

    @cached_property
    def _values(self) -> TypeAdapter[T]:
        """Made when something is stored: it takes 2 ms, and every search has such a cache."""
        return TypeAdapter(self._kind)

    def get(self, *request: object) -> T | None:
        """The stored reply to this request; None if there is none or it cannot be read."""
        text = self._replies.get(self._key(request)) if self._replies else None
        with suppress(ValidationError):
            return None if text is None else self._values.validate_json(text)
        return None

    def put(self, value: T, *request: object) -> None:
        """Store a value, unless it contains lone surrogates, which cannot be written."""
        with suppress(ValueError):
            if self._replies is not None:
                self._replies.put(self._key(request), self._values.dump_json(value).decode())

    def _key(self, request: Sequence[object]) -> str:
        whole_request = json.dumps([self._endpoint, *request], default=astuple)
        return f"{self._name}:{sha256(whole_request.encode()).hexdigest()}"


def bounded(deltas: Iterable[Delta], *, most_bytes: int = MAX_BYTES) -> Iterator[Delta]:
    """Yield `deltas` in whole characters, joining any character split between two of them. If there are more than
    `most_bytes`, yields as much text as fits and then raises ChatError."""
    held, room = "", most_bytes
    for delta in deltas:
        text = held + delta.text
        held = text[-1] if ends_in_half(text) else ""
        text = mend_characters(text[: len(text) - len(held)])
        raw = text.encode("utf-8")
        if len(raw) > room:
            yield Delta(raw[:room].decode("utf-8", "ignore"))
            too_long = f"The answer is longer than {most_bytes:,} bytes; the rest was not read."
            remedy = "Ask for less, or choose a model that does not repeat itself."
            raise ChatError(too_long, kind="interrupted", remedy=remedy)
        room -= len(raw)
        if text or delta.usage is not None:
            yield Delta(text, delta.usage)
    if held:
        yield Delta(mend_characters(held))


_WORD = r"""(?:
    (?:[\w▁-]{1,20}[:_▁-])?
    (?:think(?:ing|s)?|thoughts?|reason(?:ing)?|reflection|scratch_?pad|monologue|contemplation
        |deliberation|brainstorm(?:ing)?|planning)
    | analysis | rationale | cot
)(?:[_▁-](?:process|content|steps?|block|begin|start|end))?"""
_LEFT, _RIGHT = r"(?:[<＜]|&lt;)[|｜]?", r"[|｜]?(?:[>＞]|&gt;)"
_TURN = r"(?:<\|start\|>assistant)?"
_FENCE = r"(?:^[ ]{0,3}|(?<=[>▷\]]))(?P<fence>`{3,}|~{3,})"
_HEAD = r"^[ ]{0,3}(?:\#{1,6}[ ]+(?:[*_]{2})?|[*_]{2}|(?=[\w\ ]{1,20}:))"
_ANSWER = r"(?:final[ ])?(?:answer|decisions?|verdicts?|response|output)\b"
# Every span ends where another of its kind begins, so that reading takes linear time.
_MARK = re.compile(
    rf"""
    # A whole thought: from one heading to another, a folded section, a tag in brackets, a comment.
    (?P<whole>
        {_HEAD}{_WORD}\b[^\n]*\n (?:(?!{_HEAD}(?:{_WORD}\b|{_ANSWER}))[^\n]*\n)*+
            {_HEAD}{_ANSWER}[ \t:*_]*
        | <details[^<>]*>\s*<summary>[^<\n]{{0,40}}\b{_WORD}\b(?s:(?!</?details).)*+</details>
        | \[(?P<tag>{_WORD})\](?s:(?!\[/?{_WORD}\]).)*+\[/(?P=tag)\]
        | <!--\s*{_WORD}\b(?s:(?!<!--|-->).)*+-->
    )
    # A fence that is called a thought; others only mention a mark: blocks of code, code, and quotes on one line.
    | {_FENCE}(?:[ \t]*(?P<thought>{_WORD})(?![\w-]))?[^`\n]*\n
        (?:(?![ ]{{0,3}}(?P=fence))[^\n]*\n)*+
        (?:[ ]{{0,3}}(?P=fence)[`~]*[ \t]*$ | (?(thought)[^\n]*\Z|(?!)))
    | (?<![`\w])(?P<tick>`{{1,2}})(?![` ])[^`\n]++(?<![ ])(?P=tick)(?!`)
    | (?<![\w\\])"(?!\s)(?:[^"\\\n]|\\.)*+(?<!\s)"(?!\w) | “[^“”\n]*+” | «[^«»\n]*+»
    | (?<=['‘])[<\[◁]\S{{1,30}}(?=['’])
    | (?P<close>
        {_LEFT}(?:[ \t]{{0,3}}/[ \t]{{0,3}}{_WORD} | end[_▁-](?:of[_▁-])?{_WORD}
            | {_WORD}(?<=[_▁-]end))\s*+{_RIGHT}
        | </{_WORD}(?=\s|\Z) | ^[ \t]*+(?:\.{{3}}|…)[ ]?done[ ]thinking\b[.]?[ \t]*$
        | (?-i:\[/THINK\]) | ◁/think▷
        | {_TURN}<\|channel\|>\s*+final(?:[^<\n]{{0,40}}(?:<\|constrain\|>[\w\ ]*+)?<\|message\|>)?
        | <channel\|> | assistantfinal | (?-i:\[BEGIN\ FINAL\ RESPONSE\])
    )
    | (?P<open>
        <{_WORD}\s[^<>\n]{{0,80}}> | {_LEFT}[ \t]{{0,3}}{_WORD}[ \t]{{0,3}}{_RIGHT}
        | (?-i:\[THINK\]) | ◁think▷ | {_TURN}<\|channel\|?>\s*+(?!final)\w+
        | \A(?-i:analysis(?=[A-Z]))
    )
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
# Tags that some models put around the answer after a thought.
_WRAP = re.compile(
    r"\A\s*+(?:<(?:answer|response|output)>|<\|\w+\|>)\s*+"
    r"|(?:(?:</(?:answer|response|output)>|<\|\w+\|>|\[END FINAL RESPONSE\])\s*+){1,3}\Z",
    re.IGNORECASE,
)
MAY_BE_MARK = re.compile(
    r"[<＜◁]|&lt;|\[/?(?:T|B|[a-z])|^analysis|assistantfinal|^\W*(?:Think|Thought|Reason)"
    r"|done thinking|```|~~~",
    re.MULTILINE,
)
"""Matches the beginning of every mark of a thought."""


def without_thought(text: str) -> str:
    """Remove the parts of `text` that the model marks as thinking. A closing mark without an opening one ends a thought
    that the prompt opened, so everything before it is removed. A thought without a closing mark was cut off, so
    everything after its beginning is removed. Marks in code or quotes do not count."""
    gone: list[tuple[int, int]] = []
    opened: list[int] = []
    closed = 0
    for mark in _MARK.finditer(text):
        if (mark["whole"] or mark["thought"]) and not opened:
            gone.append(mark.span())
        elif mark["open"]:
            opened.append(mark.start())
        elif mark["close"]:
            closed = mark.end()
            begun = opened.pop() if opened else 0
            if not begun:
                gone.clear()
            if not opened:
                gone.append((begun, closed))
    if not gone and not opened:
        return text
    if opened and opened[0] < closed:
        # Some models open a thought twice but close it once.
        gone.append((opened[0], closed))
    gone += [(start, len(text)) for start in opened if start >= closed][:1]
    edges = [0, *(edge for span in gone for edge in span), len(text)]
    rest = (text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
    return _WRAP.sub("", "".join(rest)).strip()
