"""The filter in Haystack: a component between a retriever and a prompt builder."""

from __future__ import annotations

import asyncio

from ragfilter.errors import extra
from ragfilter.library.documents import Metrics
from ragfilter.library.result import FilterCall, kept_documents
from ragfilter.model import User

with extra("haystack"):
    from haystack import Document, component


@component
class FilterComponent:
    """Filters retrieved documents. `Filter.as_haystack` makes it and explains its fields."""

    def __init__(self, filter: FilterCall, metric: Metrics | None = None, user: User | None = None) -> None:
        self.filter = filter
        self.metric = metric
        self.user = user

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document], user: User | None = None) -> dict[str, list[Document]]:
        """The kept documents, best first, for `user`, by default the component's. Raises InputError, SettingsError."""
        asker = self.user if user is None else user
        scores = [doc.score for doc in documents]
        return {"documents": kept_documents(self.filter, query, documents, scores, metric=self.metric, user=asker)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], user: User | None = None
    ) -> dict[str, list[Document]]:
        """Like `run`, but in a thread, for an asynchronous pipeline."""
        return await asyncio.to_thread(self.run, query, documents, user)
