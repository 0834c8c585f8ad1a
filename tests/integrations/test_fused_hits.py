"""The filter in Haystack, with its real package, and hits that libraries fuse, which carry the dense distance or only
an order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from langchain_core import documents as langchain
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import ragfilter as rf

QUERY = "How strong is a troll?"
DENSE = {"a": 0.2, "c": 0.3, "d": 0.9}
LEXICAL = {"b": 12.0, "c": 3.0, "a": 1.0}
FUSED = "acbd"
"""The order of the hits as reciprocal ranks fuse them."""


def filtered(score: str = "", **values: Any) -> rf.Filter:
    settings = rf.Filter("adaptive-gap").settings
    paths = {f"cutoff.{name}": value for name, value in values.items()}
    return rf.Filter(settings.with_values({"cutoff.score": score, **paths}))


def test_langchains_fused_documents_are_cut_by_the_dense_distance() -> None:
    docs = [langchain.Document(f"Trolls, part {i}.", metadata={"dense": DENSE.get(i)}) for i in FUSED]
    compressor = filtered().as_langchain(metric={"dense": "cosine"})
    assert compressor.compress_documents(docs, QUERY) == docs[:2]


class Found(BaseRetriever):
    """A retriever that finds these nodes."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        super().__init__()
        self.nodes = nodes

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.nodes


def test_llamaindexs_fused_nodes_are_cut() -> None:
    for score, expected in [("", "ac"), ("fused", "ac")]:
        nodes = {i: TextNode(id_=i, text=f"Trolls, part {i}.", metadata={"dense": DENSE.get(i)}) for i in FUSED}
        dense = [NodeWithScore(node=nodes[i], score=1 - DENSE[i]) for i in DENSE]
        lexical = [NodeWithScore(node=nodes[i], score=LEXICAL[i]) for i in LEXICAL]
        fusion = QueryFusionRetriever(
            [Found(dense), Found(lexical)],
            mode="reciprocal_rerank",
            num_queries=1,
            use_async=False,
            llm=MockLLM(),
            similarity_top_k=4,
        )
        fused = fusion.retrieve(QUERY)
        metric = {"dense": "cosine", "fused": "rank"}
        post = filtered(score, max_results=2).as_llamaindex(metric=metric)
        assert {each.node.id_ for each in post.postprocess_nodes(fused, query_str=QUERY)} == {*expected}


def test_haystacks_joined_documents_are_cut() -> None:
    from haystack import Document, Pipeline
    from haystack.components.joiners import DocumentJoiner

    def found(scores: Mapping[str, float]) -> list[Any]:
        return [
            Document(id=i, content=f"Trolls, part {i}.", score=score, meta={"dense": DENSE.get(i)})
            for i, score in scores.items()
        ]

    pipeline = Pipeline()
    metric = {"dense": "cosine", "fused": "rank"}
    pipeline.add_component("filter", filtered().as_haystack(metric=metric))
    near = {i: 1 - distance for i, distance in DENSE.items()}
    joined = DocumentJoiner("reciprocal_rank_fusion").run([found(near), found(LEXICAL)])
    given = {"filter": {"query": QUERY, **joined}}
    assert {doc.id for doc in pipeline.run(given)["filter"]["documents"]} == {"a", "c"}


GAP = (0.12, 0.18, 0.22, 0.35, 0.50)


def documents(scores: tuple[float | None, ...]) -> list[Any]:
    from haystack import Document

    return [Document(content=f"Trolls, part {i}.", score=s) for i, s in enumerate(scores)]


def test_the_callers_own_documents_stay_best_first() -> None:
    docs = documents(GAP[::-1])
    found = rf.Filter("adaptive-gap").as_haystack(metric="l2").run(QUERY, docs)["documents"]
    assert [next(i for i, doc in enumerate(docs) if doc is one) for one in found] == [4, 3, 2, 1]


def test_it_is_a_part_of_a_pipeline_also_in_an_event_loop() -> None:
    from haystack import Pipeline

    docs = documents(tuple(1 - distance for distance in GAP))
    pipeline = Pipeline()
    pipeline.add_component("filter", rf.Filter("adaptive-gap").as_haystack(metric="similarity"))
    given = {"filter": {"query": QUERY, "documents": docs}}
    assert pipeline.run(given)["filter"]["documents"] == docs[:4]
    assert asyncio.run(pipeline.run_async(given))["filter"]["documents"] == docs[:4]
