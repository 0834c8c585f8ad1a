"""Stores an LLM's answers beyond the process, by exactly what was asked.

Source: docs/design.md#cache. The key is the endpoint, the model and the whole prompt, which
contains only chunks that the user may see. The prompt itself is not stored, and only complete
answers are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from pydantic import TypeAdapter, ValidationError

from ragfilter.answer import prompts
from ragfilter.answer.context import Context
from ragfilter.answer.stream import Answer, Prices, cited
from ragfilter.protocols import Message, Texts, Usage

_KEPT = TypeAdapter(tuple[str, Usage, float])


class Answers:
    """The answers of the endpoint `endpoint` in `texts`; None stores nothing."""

    def __init__(self, texts: Texts | None = None, endpoint: str = "") -> None:
        self._texts = texts
        self._endpoint = endpoint

    def get(
        self, query: str, context: Context, model: str, prices: Prices | None = None
    ) -> Answer | None:
        """The model's earlier answer, None if there is none. Its cost is at today's prices."""
        if self._texts is None or not context.chunks:
            return None
        messages = prompts.messages(query, context)
        text = self._texts.get(self._key(model, messages))
        if text is None:
            return None
        try:
            said, usage, ms = _KEPT.validate_json(text)
        except ValidationError:
            return None
        known, unknown = cited(said, len(context.chunks))
        return Answer(
            said,
            known,
            unknown,
            model=model,
            prompt=messages,
            prompt_version=prompts.VERSION,
            usage=usage,
            cost=None if prices is None else prices.of(usage),
            currency="" if prices is None else prices.currency,
            ms=ms,
            cached=True,
        )

    def put(self, answer: Answer) -> None:
        """Store a model's answer if it is complete and not empty."""
        if self._texts is None or answer.error or not answer.prompt or not answer.text.strip():
            return
        try:
            kept = _KEPT.dump_json((answer.text, answer.usage, answer.ms)).decode()
        except ValueError:
            # Lone surrogates: such a text cannot be written.
            return
        self._texts.put(self._key(answer.model, answer.prompt), kept)

    def _key(self, model: str, messages: Sequence[Message]) -> str:
        said = [(message.role, message.content) for message in messages]
        asked = json.dumps([self._endpoint, model, prompts.VERSION, said])
        return f"answer-1:{sha256(asked.encode()).hexdigest()}"
