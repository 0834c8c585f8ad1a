"""Caches the judge's answers by exactly what was asked. Limited in size and thread-safe.

Source: Intelligent Chunk Filtering, "Caching layer for repeated relevance assessments";
docs/decisions/0011-a-judgement-belongs-to-its-prompt.md. One call judges a set of chunks, and the
verdict on one depends on the others. So the whole answer is stored under the model and the key of
the whole prompt. Failures are not stored, since asking again may help. If there is a cache file,
answers outlive the process there, except for their raw words, which only operators may read.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from statistics import median

from pydantic import TypeAdapter, ValidationError

from ragfilter.basics.shelf import Shelf
from ragfilter.model import Judgement
from ragfilter.protocols import Texts

SIZE = 256
REMEMBERED_CALLS = 20
MOST_OF_ONE_POOL = 16

_KEPT = TypeAdapter(Judgement)


class Judgements:
    """The last `size` answers used, by (model, `Judgement.prompt_key`); the least recently used
    goes first. `texts` stores those of the endpoint `endpoint` beyond the process."""

    def __init__(self, size: int = SIZE, *, texts: Texts | None = None, endpoint: str = "") -> None:
        self._texts = texts
        self._endpoint = endpoint
        self._kept: Shelf[Judgement] = Shelf(size)
        self._ms: dict[str, deque[float]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: tuple[str, str]) -> bool:
        return self.get(*key) is not None

    def get(self, model: str, prompt_key: str) -> Judgement | None:
        """The model's cached answer, marked as cached; None if there is none (any more)."""
        key = (model, prompt_key)
        judgement = self._kept.get(key) or self._read(*key)
        if judgement is None:
            return None
        return replace(self._kept.put(key, judgement), cached=True)

    def put(self, judgement: Judgement) -> None:
        """Cache an answer, unless it has an error."""
        if judgement.error:
            return
        self._kept.put((judgement.model, judgement.prompt_key), judgement)
        with self._kept.lock:
            times = self._ms.setdefault(judgement.model, deque(maxlen=REMEMBERED_CALLS))
            times.append(judgement.ms)
        self._write(judgement)

    def usual_ms(self, model: str) -> float | None:
        """The median of the model's recent calls in milliseconds, None if it made none."""
        with self._kept.lock:
            times = self._ms.get(model)
            return median(times) if times else None

    def _read(self, model: str, prompt_key: str) -> Judgement | None:
        text = self._texts.get(self._key(model, prompt_key)) if self._texts else None
        try:
            judgement = None if text is None else _KEPT.validate_json(text)
        except ValidationError:
            return None
        # The file may have been written by anyone, so its content counts for this prompt only.
        if judgement is None or (judgement.model, judgement.prompt_key) != (model, prompt_key):
            return None
        named = {verdict.chunk_id for verdict in judgement.verdicts}
        return judgement if named and named <= set(judgement.asked) else None

    def _write(self, judgement: Judgement) -> None:
        if self._texts is None or not judgement.verdicts:
            return
        try:
            kept = _KEPT.dump_json(replace(judgement, reply="", cached=False)).decode()
        except ValueError:
            # Lone surrogates: such an id cannot be written.
            return
        self._texts.put(self._key(judgement.model, judgement.prompt_key), kept)

    def _key(self, model: str, prompt_key: str) -> str:
        asked = json.dumps([self._endpoint, model, prompt_key])
        return f"judgement-1:{sha256(asked.encode()).hexdigest()}"


def join_judgements(before: Iterable[Judgement], new: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """The judgements of a pool with new ones: one per prompt, the latest last, in a limited number.
    A failure never replaces a success."""
    kept: dict[object, Judgement] = {}
    for judgement in (*before, *new):
        prompt = judgement.prompt_key or (judgement.asked, judgement.left_out)
        known = kept.get(prompt)
        if known is not None and judgement.error and not known.error:
            continue
        kept.pop(prompt, None)
        kept[prompt] = judgement
    return tuple(kept.values())[-MOST_OF_ONE_POOL:]
