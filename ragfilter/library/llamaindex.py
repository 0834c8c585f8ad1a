"""The filter in LlamaIndex: a node postprocessor."""

from __future__ import annotations

import logging
from math import inf, log
from typing import Any

from ragfilter.errors import InputError, extra
from ragfilter.library.documents import Metrics
from ragfilter.library.result import FilterCall, kept_documents
from ragfilter.model import User

with extra("llamaindex"):
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import NodeWithScore, QueryBundle

logger = logging.getLogger(__name__)

DISTANCES = ("l2", "euclidean", "cosine", "ip")
UNSAID = (
    "LlamaIndex's Chroma store reports exp(−distance) as a node's score. Pass exponential=True "
    "with the collection's own metric if these come from there, and exponential=False if not."
)


class FilterPostprocessor(BaseNodePostprocessor):
    """Filters retrieved nodes. `Filter.as_llamaindex` makes it and explains its fields."""

    filter: FilterCall = Field(exclude=True)
    metric: Metrics | None = None
    exponential: bool | None = None
    user: User | None = None

    @classmethod
    def class_name(cls) -> str:
        return "RagfilterPostprocessor"

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        if self.exponential and self.metric not in DISTANCES:
            raise InputError(
                "exp(−distance) can be turned back into distances only if their metric is named.",
                remedy="Name the collection's: metric='l2', 'cosine' or 'ip'.",
            )
        if self.exponential is None and self.metric in (*DISTANCES, "similarity"):
            logger.warning("%s", UNSAID)

    def postprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,
        query_str: str | None = None,
        *,
        user: User | None = None,
    ) -> list[NodeWithScore]:
        """The kept nodes, best first, for `user`, by default the postprocessor's. Raises InputError, SettingsError."""
        return super(FilterPostprocessor, self._of(user)).postprocess_nodes(nodes, query_bundle, query_str)

    async def apostprocess_nodes(
        self,
        nodes: list[NodeWithScore],
        query_bundle: QueryBundle | None = None,
        query_str: str | None = None,
        *,
        user: User | None = None,
    ) -> list[NodeWithScore]:
        """Like `postprocess_nodes`, but in a thread, for an event loop."""
        return await super(FilterPostprocessor, self._of(user)).apostprocess_nodes(nodes, query_bundle, query_str)

    def _of(self, user: User | None) -> FilterPostprocessor:
        return self if user is None else self.model_copy(update={"user": user})

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError("There is no query.", remedy="Pass query_str or query_bundle.")
        scores = [node.score for node in nodes]
        if self.exponential:
            # A score too small for a float is infinitely far.
            scores = [s if s is None else -log(s) if s > 0 else inf for s in scores]
        return kept_documents(self.filter, query_bundle.query_str, nodes, scores, metric=self.metric, user=self.user)
