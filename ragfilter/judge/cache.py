"""What the judge said before, by exactly what it was asked. Bounded, safe in threads.

Source: Intelligent Chunk Filtering, "Caching layer for repeated relevance assessments";
docs/decisions/0011-a-judgement-belongs-to-its-prompt.md. One call is over a set of chunks, and what
it says of one depends on the others, so the whole answer is kept by the model and the key of the
whole prompt. Failures are not kept: asking again may help.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import replace
from statistics import median

from ragfilter.model import Judgement

SIZE = 256
REMEMBERED_CALLS = 20
MOST_OF_ONE_POOL = 16


class Judgements:
    """The last `size` answers that were used, by (model, `Judgement.prompt_key`); the one unused
    for longest goes first."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._kept: OrderedDict[tuple[str, str], Judgement] = OrderedDict()
        self._ms: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._kept)

    def __contains__(self, key: tuple[str, str]) -> bool:
        with self._lock:
            return key in self._kept

    def get(self, model: str, prompt_key: str) -> Judgement | None:
        """What the model answered, marked as remembered; None where it is not (any more)."""
        key = (model, prompt_key)
        with self._lock:
            judgement = self._kept.get(key)
            if judgement is None:
                return None
            self._kept.move_to_end(key)
            return replace(judgement, cached=True)

    def put(self, judgement: Judgement) -> None:
        """Keep an answer; one with an error is not kept."""
        if judgement.error:
            return
        key = (judgement.model, judgement.prompt_key)
        with self._lock:
            self._kept[key] = judgement
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
            times = self._ms.setdefault(judgement.model, deque(maxlen=REMEMBERED_CALLS))
            times.append(judgement.ms)

    def usual_ms(self, model: str) -> float | None:
        """The median of the model's last calls in milliseconds, None where it made none."""
        with self._lock:
            times = self._ms.get(model)
            return median(times) if times else None


def joined(before: Iterable[Judgement], new: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """The judgements of a pool with new ones: one a prompt, the latest last, a bounded number. A
    failure takes no success's place."""
    kept: dict[object, Judgement] = {}
    for judgement in (*before, *new):
        prompt = judgement.prompt_key or (judgement.asked, judgement.left_out)
        known = kept.get(prompt)
        if known is not None and judgement.error and not known.error:
            continue
        kept.pop(prompt, None)
        kept[prompt] = judgement
    return tuple(kept.values())[-MOST_OF_ONE_POOL:]
