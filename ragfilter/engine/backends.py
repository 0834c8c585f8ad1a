"""The store and models of one query, as `gather` and `complete` use them.

Source: docs/design.md#replay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ragfilter.judge.cache import Judgements
from ragfilter.protocols import ChatModel, Collection, Embedder, Reranker
from ragfilter.settings.schema import Quality


@dataclass(frozen=True, slots=True)
class Backends:
    """The store and models of one query: where the chunks are, and which models may be asked.

    `judgements` remembers the judge's answers. Without it, every question is asked.
    """

    collection: Collection
    embedder: Embedder
    reranker: Callable[[Quality], Reranker] | None = None
    chat: ChatModel | None = None
    judgements: Judgements | None = None

    def at_once(self) -> Backends:
        """The same, with the collection as it is now: one query need look it up only once."""
        pin = getattr(self.collection, "at_once", None)
        return self if pin is None else replace(self, collection=pin())

    @property
    def incomplete(self) -> str:
        """Why the collection may lack chunks; empty if it is complete, or does not say."""
        return getattr(self.collection, "incomplete", "")
