"""The filter in LangChain: a document compressor, a retriever, and tools for an agent."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from ragfilter import report
from ragfilter.basics.extras import extra
from ragfilter.library.own import FilterCall, keep
from ragfilter.library.result import Result
from ragfilter.library.scores import Metric
from ragfilter.library.tools import ChunkTools, raising
from ragfilter.model import PUBLIC, User
from ragfilter.settings.schema import Settings

with extra("langchain"):
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import run_in_executor
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict

if TYPE_CHECKING:
    from ragfilter.workbench import Workbench


class FilterCompressor(BaseDocumentCompressor):
    """Filters retrieved documents. `Filter.as_langchain` makes it and says what its fields mean."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    filter: FilterCall
    metric: Metric | None = None
    score_key: str = "score"
    decisions: bool = False
    user: User = PUBLIC

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents that stay, best first. Raises InputError, SettingsError."""
        scores = [doc.metadata.get(self.score_key) for doc in documents]
        kept, result = keep(
            self.filter, query, documents, scores, metric=self.metric, user=self.user
        )
        return _with_decisions(kept, result) if self.decisions else kept


class FilterRetriever(BaseRetriever):
    """Searches a vector store and filters what it finds. `Filter.as_langchain_retriever` makes
    it."""

    filter: FilterCall
    store: VectorStore
    metric: Metric
    k: int
    user: User = PUBLIC

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._keep(query, self.store.similarity_search_with_score(query, k=self.k))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        found = await self.store.asimilarity_search_with_score(query, k=self.k)
        return await run_in_executor(None, self._keep, query, found)

    def _keep(self, query: str, found: list[tuple[Document, float]]) -> list[Document]:
        docs, scores = [doc for doc, _ in found], [score for _, score in found]
        return keep(self.filter, query, docs, scores, metric=self.metric, user=self.user)[0]


def chunk_tools(
    workspace: Workbench,
    collection: str,
    *,
    settings: Settings | str = "full",
    user: User = PUBLIC,
) -> list[BaseTool]:
    """The tools ``search_chunks`` and ``get_chunks`` over an open workspace, for an agent.

    `collection` and `settings` (or a profile's name) hold where the agent names no other. `user` is
    who asks, for good: the agent cannot change it, and clearance is on in every profile.
    """
    tools = ChunkTools.of(workspace, collection, settings, user)
    return [
        StructuredTool.from_function(
            raising(function, ToolException),
            description=getdoc(function),
            handle_tool_error=True,
            handle_validation_error=True,
        )
        for function in (tools.search_chunks, tools.get_chunks)
    ]


def _with_decisions(kept: Sequence[Document], result: Result) -> list[Document]:
    """Copies of the documents, with why each stays in their metadata."""
    rows = {row.id: row for row in report.rows(result)}
    return [
        doc.model_copy(update={"metadata": doc.metadata | {"ragfilter": _decision(rows[hit.id])}})
        for doc, hit in zip(kept, result, strict=True)
    ]


def _decision(row: report.ChunkRow) -> dict[str, Any]:
    names = ("rank", "distance", "rerank_score", "outcome", "layer", "reason")
    return {name: getattr(row, name) for name in names}
