"""Calls of the chat adapter, whatever its endpoint does."""

from __future__ import annotations

import json
from typing import Any

from faults import KEY, Behave, Server, page
from waiting import PATIENT_S

from ragfilter.errors import ChatError
from ragfilter.models.openai import OpenAIChat
from ragfilter.protocols import Message, Usage

ASK = (Message("system", "be short"), Message("user", "why?"))
SCHEMA: dict[str, object] = {"type": "object", "properties": {}, "additionalProperties": False}


def chat(server: Server) -> OpenAIChat:
    return OpenAIChat(model="tiny", api_key=KEY, base_url=server.url)


def ask(
    server: Server, *, timeout_s: float = PATIENT_S, schema: dict[str, object] | None = None
) -> tuple[str, Usage | None, ChatError | None]:
    """The text and usage that arrived, and the failure, if any."""
    text, usage, failure = "", None, None
    try:
        for delta in chat(server).stream(ASK, timeout_s=timeout_s, schema=schema):
            text += delta.text
            usage = delta.usage or usage
    except ChatError as error:
        failure = error
    return text, usage, failure


def failed(server: Server, **asked: Any) -> ChatError:
    """How the call failed."""
    failure = ask(server, **asked)[2]
    assert failure is not None
    assert failure.remedy
    assert KEY not in str(failure)
    return failure


def document(reason: str | None, content: Any = "Trolls", **more: Any) -> Behave:
    """Answers with one document instead of a stream."""
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": reason}
    return page(200, json.dumps({"choices": [choice]} | more), "application/json")


def delta(text: str) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    return f"data: {json.dumps({'choices': [choice]})}\n\n".encode()
