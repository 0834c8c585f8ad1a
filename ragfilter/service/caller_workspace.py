"""The open workspace for one caller, who can search it, filter hits and rank documents. Questions are counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from ragfilter import protocols
from ragfilter.errors import ModelError
from ragfilter.library.filter import Filter
from ragfilter.library.result import Result
from ragfilter.library.workspace import OpenWorkspace
from ragfilter.model import Chunk, User
from ragfilter.protocols import Reranker
from ragfilter.results.rows import ChunkRow, rows
from ragfilter.service.access import Caller
from ragfilter.service.prometheus import Metrics
from ragfilter.settings.schema import Settings

ResultWithRows = tuple[Result, tuple[ChunkRow, ...]]


@dataclass(frozen=True, slots=True)
class CallerWorkspace:
    """A caller's access to the open workspace. Counts the questions at `path` in `metrics`."""

    workspace: OpenWorkspace
    metrics: Metrics
    caller: Caller
    path: str

    def __getitem__(self, name: str) -> Any:
        """The collection called `name`, as an agent's tools search it."""
        return SimpleNamespace(search=lambda query, settings, *, user: self.search(query, name, settings, user)[0])

    def collection(self, name: str) -> protocols.Collection:
        """The collection called `name`. Raises Refused, StoreError."""
        self.caller.check(name)
        return self.workspace.collection(name)

    def search(self, question: str, collection: str, settings: Settings, user: User) -> ResultWithRows:
        """Search a collection. Raises Refused, and the errors of `OpenCollection.search`."""
        self.caller.check(collection)
        search = self.workspace[collection].search
        return self._counted(lambda: search(question, settings, user=user))

    def filter(
        self,
        question: str,
        hits: Sequence[Any],
        settings: Settings,
        user: User,
        *,
        metric: str | Mapping[str, str] | None,
        scores: Sequence[float] | None = None,
    ) -> ResultWithRows:
        """Filter these hits with the workspace's reranker and judge. Raises as `Filter` does."""
        judge = self.workspace.chat if settings.judge.enabled else None
        flt = Filter(settings, reranker=self._reranker(settings), judge=judge)
        return self._counted(lambda: flt(question, hits, scores, metric=metric, user=user))

    def rank(self, question: str, hits: Sequence[dict[str, Any]], settings: Settings, user: User) -> ResultWithRows:
        """Filter these hits by their distances with the workspace's embedding model."""
        # The passages are the same as in indexing.
        passages = [Chunk("", hit["text"], hit["title"]).passage for hit in hits]
        vectors = self.workspace.embedder.embed([question, *passages])
        scores = [float(1 - score) for score in np.asarray(vectors[1:] @ vectors[0])]
        return self.filter(question, hits, settings, user, metric="cosine", scores=scores)

    def _reranker(self, settings: Settings) -> Reranker | None:
        quality = settings.quality
        if not quality.enabled or quality.reranker == "none":
            return None
        try:
            return self.workspace.reranker(quality)
        except ModelError:
            return None  # The layer falls back, and the answer says so.

    def _counted(self, ask: Callable[[], Result]) -> ResultWithRows:
        started = perf_counter()
        result = ask()
        chunk_rows = rows(result)
        self.metrics.count_question(self.path, result, chunk_rows, perf_counter() - started)
        return result, chunk_rows
