"""Embeds the sentences of indexed chunks, from which extractive answers are chosen, before any question: at the end of
`ragfilter index`, or while the app is idle. Answers embed missing ones. Source: docs/design.md#parts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from time import monotonic

from ragfilter.errors import RagfilterError
from ragfilter.models.embedders import OPENAI
from ragfilter.stores.caches import VectorCache
from ragfilter.text.sentences import passages_of
from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

PART = 16
"""Sentences per batch while questions may arrive: a question waits for one batch at most."""
LARGE_PART = 256
"""Sentences per batch while no question can arrive, which takes half the time."""
QUIET_S = 1.0
"""How long the app must have been idle."""
MAX_SENTENCES = 50_000
"""Maximum number of sentences in a collection; in a larger one, answers embed what they need."""


def prepare(bench: Workbench, sentences: VectorCache, part: int = LARGE_PART) -> Iterator[tuple[int, int]]:
    """Embed the missing sentences of the workspace's own collections in batches of `part`. Yields
    (done, total) for the current collection after each batch."""
    model, workspace = bench.embedder, bench.workspace
    if model.name.startswith(OPENAI):
        return
    completed = sentences.completed()
    marks = {name: f"{model.name} {at.isoformat()}" for name, at in workspace.contents.changed().items()}
    for gone in completed.keys() - marks.keys():
        sentences.forget(gone)
    for name in (name for name, mark in marks.items() if completed.get(name) != mark):
        every: list[str] = []
        try:
            texts = [text for chunk in workspace.contents.texts(name) for text in passages_of(chunk.title, chunk.text)]
            every = list(dict.fromkeys(texts)) if len(texts) <= MAX_SENTENCES else []
            known = sentences.find(model.name, every)
            # Sorted, so that a batch has texts of similar length.
            waiting = sorted((text for text in every if text not in known), key=len)
            for start in range(0, len(waiting), part):
                some = waiting[start : start + part]
                sentences.put(name, model.name, some, model.embed(some))
                yield start + len(some), len(waiting)
        except RagfilterError as error:
            # The collection is marked as complete below, so this is not tried repeatedly.
            log.warning("cannot embed the sentences of %s ahead: %s", name, error)
        sentences.mark_complete(name, marks[name], model.name, every)


def prepare_when_idle(bench: Workbench, sentences: VectorCache, is_busy: Callable[[], bool]) -> Callable[[], bool]:
    """A function that embeds the next batch, unless `is_busy()` was true within `QUIET_S`. Returns whether it did."""
    parts: Iterator[tuple[int, int]] = iter(())
    quiet_from = 0.0

    def step() -> bool:
        nonlocal parts, quiet_from
        if is_busy():
            quiet_from = monotonic() + QUIET_S
        if monotonic() < quiet_from:
            return False
        if next(parts, None) is None:
            parts = prepare(bench, sentences, PART)
            return next(parts, None) is not None
        return True

    return step
