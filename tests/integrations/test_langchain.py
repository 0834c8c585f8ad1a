"""The filter in LangChain, with its real package."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

import ragfilter as rf
from ragfilter.library.langchain import chunk_tools
from ragfilter.workbench import Workbench

QUERY = "How strong is a troll?"
GAP = (0.12, 0.18, 0.22, 0.35, 0.50)
"""The cliff is after the fourth."""
UNSQUARED = (0.9, 1.0, 1.06, 1.14)
"""Their squares have a cliff after the third; they have none."""


def documents(scores: tuple[float | None, ...] = GAP, key: str = "score") -> list[Document]:
    return [
        Document(f"Trolls, part {i}.", metadata={} if score is None else {key: score}) for i, score in enumerate(scores)
    ]


def compressed(docs: list[Document], **given: Any) -> list[int]:
    """The positions of the documents that stay; each must be one of those passed."""
    kept = rf.Filter("adaptive-gap").as_langchain(**given).compress_documents(docs, QUERY)
    return [next(i for i, doc in enumerate(docs) if doc is found) for found in kept]


def test_the_callers_own_documents_stay_best_first() -> None:
    assert compressed(documents(GAP[::-1]), metric="l2") == [4, 3, 2, 1]
    assert compressed(documents(GAP, key="distance"), metric="l2", score_key="distance") == [0, 1, 2, 3]
    assert compressed([], metric="l2") == []
    assert compressed(documents(UNSQUARED), metric="euclidean") == [0, 1, 2]
    assert compressed(documents((0.5, 9.0, 7.0)), metric="rank") == [1, 2, 0]


def test_without_a_score_for_each_the_order_is_the_rank() -> None:
    for scores in [(None,) * 5, (0.12, None, 0.22, 0.35, 0.5)]:
        assert compressed(documents(scores)) == [0, 1, 2, 3, 4]


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(rf.RagfilterError, match="score of document 1 is array"):
        compressed([Document("a", metadata={"score": np.array([0.1, 0.2])})], metric="l2")


def test_a_document_is_handed_back_where_its_references_are_hidden() -> None:
    docs = [Document("a", id="a", metadata={"refs": ["b"]}), Document("b", id="b", metadata={"clearance": 2})]
    assert rf.Filter("full").as_langchain().compress_documents(docs, QUERY)[0] is docs[0]


class Angles(Embeddings):
    """A text "0.88" has that cosine similarity to every query."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float(t), math.sqrt(1 - float(t) ** 2)] for t in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


def test_the_retriever_filters_what_a_vector_store_finds() -> None:
    store = InMemoryVectorStore(Angles())
    store.add_texts([str(1 - distance) for distance in GAP])
    flt = rf.Filter("adaptive-gap")
    retriever = flt.as_langchain_retriever(store, metric="similarity")
    assert (retriever.k, retriever.fetch_k) == (None, flt.settings.retrieval.pool_size)
    kept = [doc.page_content for doc in retriever.invoke(QUERY)]
    assert kept == ["0.88", "0.8200000000000001", "0.78", "0.65"]
    assert [doc.page_content for doc in asyncio.run(retriever.ainvoke(QUERY))] == kept
    few = flt.as_langchain_retriever(store, metric="similarity", fetch_k=2)
    assert len(few.invoke(QUERY)) == 2


def test_an_agent_gets_tools_that_describe_themselves(workspace: Workbench) -> None:
    search, get = chunk_tools(workspace, "refs", settings="query-must")
    assert (search.name, get.name) == ("search_chunks", "get_chunks")
    assert search.args.keys() == {"query", "k", "profile", "collection"}
    found = search.invoke({"query": "what is there?", "k": 2})
    assert [chunk["id"] for chunk in found["chunks"]] == ["root", "a"]
    assert asyncio.run(get.ainvoke({"ids": ["a"]}))["chunks"][0]["text"] == "about a"
