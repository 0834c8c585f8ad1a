"""The filter in LangChain: a document compressor, a retriever, and tools for an agent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import getdoc
from typing import Any

from ragfilter.errors import InputError, extra
from ragfilter.library.documents import Metrics
from ragfilter.library.result import FilterCall, kept_documents
from ragfilter.library.tools import ChunkTools, Searchable, raising
from ragfilter.model import PUBLIC, Metric, User
from ragfilter.settings.config import of_profile
from ragfilter.settings.profiles import DEFAULT
from ragfilter.settings.schema import Settings

with extra("langchain"):
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun, Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableConfig, ensure_config, run_in_executor
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict


log = logging.getLogger(__name__)

UNSCORED = (
    "The documents have no score in metadata[%r], so only their order counts. A vector store's own "
    "retriever leaves scores out: use Filter.as_langchain_retriever(store, metric=…) instead"
)


class FilterCompressor(BaseDocumentCompressor):
    """Filters retrieved documents. `Filter.as_langchain` makes it and explains its fields."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    filter: FilterCall
    metric: Metrics | None = None
    score_key: str = "score"
    user: User | None = None

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None, *, user: User | None = None
    ) -> Sequence[Document]:
        """The kept documents, best first, for `user`, by default the compressor's. Raises InputError, SettingsError."""
        asker = _configured().get("user", self.user) if user is None else user
        scores = [doc.metadata.get(self.score_key) for doc in documents]
        if documents and all(score is None for score in scores) and not isinstance(self.metric, Mapping):
            log.warning(UNSCORED, self.score_key)
        return kept_documents(self.filter, query, documents, scores, metric=self.metric, user=asker)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None, *, user: User | None = None
    ) -> Sequence[Document]:
        """Like `compress_documents`, but in a thread, for an event loop."""
        compress = partial(self.compress_documents, user=user)
        return await run_in_executor(None, compress, documents, query, callbacks)


class FilterRetriever(BaseRetriever):
    """Searches a vector store and filters the hits. `Filter.as_langchain_retriever` makes it and
    explains its fields. `invoke` takes a `user` and a `k` for one call."""

    filter: FilterCall
    store: VectorStore
    metric: Metric
    k: int | None = None
    fetch_k: int = Settings().retrieval.pool_size
    user: User | None = None

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """The kept documents, best first. `user` and `k` apply to this call; by default, they come
        from the configuration (``config["configurable"]``), then the retriever. Raises InputError,
        SettingsError, and the store's errors."""
        return super().invoke(input, config, **_configured(config) | kwargs)

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """Like `invoke`, for an event loop."""
        return await super().ainvoke(input, config, **_configured(config) | kwargs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, user: User | None = None, k: int | None = None
    ) -> list[Document]:
        most = self._most(k)
        scored = self.store.similarity_search_with_score(query, k=max(self.fetch_k, most or 0))
        return self._keep(query, scored, user)[:most]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        user: User | None = None,
        k: int | None = None,
    ) -> list[Document]:
        most = self._most(k)
        scored = await self.store.asimilarity_search_with_score(query, k=max(self.fetch_k, most or 0))
        return (await run_in_executor(None, self._keep, query, scored, user))[:most]

    def _most(self, k: int | None) -> int | None:
        """The maximum number of documents to return, or None for all. Raises InputError."""
        most = self.k if k is None else k
        if most is not None and (not isinstance(most, int) or most < 1):
            raise InputError(f"k is {most!r}.", remedy="Pass a whole number of at least 1.")
        return most

    def _keep(self, query: str, scored: list[tuple[Document, float]], user: User | None) -> list[Document]:
        docs, scores = [doc for doc, _ in scored], [score for _, score in scored]
        asker = self.user if user is None else user
        return kept_documents(self.filter, query, docs, scores, metric=self.metric, user=asker)


def _configured(config: RunnableConfig | None = None) -> dict[str, Any]:
    """The `user` and `k` in a run's configuration, which chains pass on. Raises InputError if `user` is not a User."""
    known = ensure_config(config).get("configurable", {})
    arguments = {name: known[name] for name in ("user", "k") if known.get(name) is not None}
    if not isinstance(arguments.get("user"), User | None):
        raise InputError(f"The user is {arguments['user']!r}.", remedy="Pass a User.")
    return arguments


def chunk_tools(
    workspace: Searchable, collection: str, *, settings: Settings | str = "full", user: User = PUBLIC
) -> list[BaseTool]:
    """The tools ``search_chunks`` and ``get_chunks`` over an open workspace, for an agent.

    `collection` and `settings` (or a profile's name) apply unless the agent names others. `user` is the user who asks,
    unless the run's configuration has one (``config["configurable"]["user"]``). The agent can change neither, and no
    profile that it chooses shows it more."""
    settings = of_profile(settings or DEFAULT) if isinstance(settings, str) else settings
    tools = ChunkTools(workspace, collection, settings, user)

    def tool(function: Callable[..., Any]) -> BaseTool:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            mine = replace(tools, user=_configured().get("user", user))
            return getattr(mine, function.__name__)(*args, **kwargs)

        return StructuredTool.from_function(
            raising(called, ToolException),
            description=getdoc(function),
            handle_tool_error=True,
            handle_validation_error=True,
        )

    return [tool(tools.search_chunks), tool(tools.get_chunks)]
