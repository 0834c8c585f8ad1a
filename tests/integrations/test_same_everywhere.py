"""Page, command line, library and adapters keep the same chunks in the same order, for the
source documents' questions, a sample of the other labelled ones, and every profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import exp
from pathlib import Path

import haystack
import pytest
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode
from stores import Remembering

import ragfilter as rf
from ragfilter.cli import parts
from ragfilter.engine.replay import replay, retrieved
from ragfilter.ingest import demo
from ragfilter.settings.deployment import Deployment
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings
from ragfilter.ui.session import pools
from ragfilter.ui.session.resources import Resources
from ragfilter.workbench import open_workbench

OTHER_SIDES = {
    (profile, question)
    for profile in ("full", "adaptive-gap+entities")
    for question in ("fighter-druid", "fighter-druid-short")
}
"""Where an adapter keeps other chunks: each side of a comparison is searched for on its own, and an
adapter has only the hits of the whole question. Their nearest druid is another one."""


def fields(chunk: rf.Chunk) -> dict[str, object]:
    """What a store keeps of a chunk beside its text."""
    return {
        "title": chunk.title,
        "type": chunk.type,
        "source": chunk.source,
        "page": chunk.page,
        "refs": list(chunk.refs),
        "clearance": chunk.clearance,
        "query_must": chunk.rule,
    }


def by_langchain(flt: rf.Filter, query: str, hits: Sequence[rf.Hit]) -> list[str | None]:
    docs = [
        Document(hit.chunk.text, id=hit.id, metadata=fields(hit.chunk) | {"score": hit.distance})
        for hit in hits
    ]
    return [doc.id for doc in flt.as_langchain(metric="l2").compress_documents(docs, query)]


def by_llamaindex(flt: rf.Filter, query: str, hits: Sequence[rf.Hit]) -> list[str]:
    nodes = [
        NodeWithScore(
            node=TextNode(text=hit.chunk.text, id_=hit.id, metadata=fields(hit.chunk)),
            score=exp(-hit.distance),
        )
        for hit in hits
    ]
    made = flt.as_llamaindex(metric="l2", exponential=True)
    return [node.node_id for node in made.postprocess_nodes(nodes, query_str=query)]


def by_haystack(flt: rf.Filter, query: str, hits: Sequence[rf.Hit]) -> list[str]:
    docs = [
        haystack.Document(
            id=hit.id, content=hit.chunk.text, meta=fields(hit.chunk), score=hit.distance
        )
        for hit in hits
    ]
    return [doc.id for doc in flt.as_haystack(metric="l2").run(query, docs)["documents"]]


def asked_of(queries: dict[str, str]) -> dict[str, str]:
    """The source documents' own questions, which come first, and every sixth of the others."""
    names = list(queries)
    return {name: queries[name] for name in (*names[:8], *names[8::6])}


def by_page(query: str, settings: Settings, page: Resources) -> list[str]:
    """What the page replays, without the drawing."""
    asked = pools.put(query, "demo", settings, rf.User(), page)
    pool = pools.pool_of(asked, settings, page)
    pool = pools.settle(asked, pool, settings, rf.User(), page)
    return [hit.id for hit in replay(pool, settings, rf.User()).kept]


@pytest.mark.model
def test_all_keep_the_same_chunks_in_the_same_order(copy_demo: Callable[[], Path]) -> None:
    others = set()
    with open_workbench(Deployment(data_dir=copy_demo())) as opened:
        bench = replace(opened, embedder=Remembering())
        page = Resources(bench, bench.deployment)
        backends = parts.backends(bench, "demo")
        for profile in PROFILES:
            loaded = parts.load_config(profile, None, None, {})
            flt = rf.Filter(profile, reranker=bench.reranker(loaded.settings.quality))
            for name, query in asked_of(demo.queries()).items():
                asked = parts.ask(query, loaded, backends, rf.User())
                kept = [hit.id for hit in asked.kept]
                assert [hit.id for hit in bench["demo"].search(query, profile)] == kept
                assert by_page(query, loaded.settings, page) == kept
                hits = retrieved(asked.pool, asked.settings, asked.user)
                adapted = [
                    by(flt, query, hits) for by in (by_langchain, by_llamaindex, by_haystack)
                ]
                assert adapted[0] == adapted[1] == adapted[2], (profile, name)
                if adapted[0] != kept:
                    others.add((profile, name))
    assert others == OTHER_SIDES
