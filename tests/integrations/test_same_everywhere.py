"""Page, command line, library and adapters keep the same chunks in the same order: with every
profile for the source documents' questions and some others of the demo collection, with one profile
for further questions, and for a user who can see more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode
from stores import Remembering, read_once

import ragfilter as rf
from ragfilter.cli import options
from ragfilter.cli.query import ask
from ragfilter.engine.pool import entering_hits
from ragfilter.engine.replay import replay
from ragfilter.ingest import bundled
from ragfilter.layers.quality import reranker_key
from ragfilter.library.workspace import OpenWorkspace
from ragfilter.protocols import Reranker
from ragfilter.settings.deployment import Deployment
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import asking

OTHER_SIDES = {
    (profile, question)
    for profile in ("full", "short-answers", "adaptive-gap+entities")
    for question in ("fighter-druid", "fighter-druid-short")
}
"""Questions for which an adapter keeps other chunks: each side of a comparison is searched for by
itself, but an adapter has only the whole question's hits. Their nearest druid is another one."""

ADAPTERS = ("langchain", "llamaindex", "haystack")
SOURCES = 8
"""How many of the demo's first questions are the source documents' own."""
IN_ALL, IN_ONE = 40, 10
"""Every `IN_ALL`-th question is asked in all profiles, every `IN_ONE`-th in the first one."""
CHUNKS = 592
"""The size of the demo."""
USERS = [
    pytest.param(rf.User(), sorted(PROFILES, key=lambda name: name != "full"), id="public"),
    pytest.param(rf.User(1, ("referee",)), ("full",), id="referee"),
]


def fields(chunk: rf.Chunk) -> dict[str, object]:
    """A chunk's fields in a store, besides its text."""
    return {
        "title": chunk.title,
        "type": chunk.type,
        "source": chunk.source,
        "page": chunk.page,
        "refs": list(chunk.refs),
        "clearance": chunk.clearance,
        "department": chunk.department,
        "query_must": chunk.rule,
    }


@dataclass(frozen=True)
class Documents:
    """The same hits as documents of each library."""

    langchain: list[Document]
    llamaindex: list[NodeWithScore]
    haystack: list[Any]

    @classmethod
    def of(cls, hits: Sequence[rf.Hit]) -> Documents:
        import haystack

        rows = [(hit.id, hit.chunk.text, fields(hit.chunk), hit.distance) for hit in hits]
        return cls(
            [Document(text, id=i, metadata=own | {"score": d}) for i, text, own, d in rows],
            [NodeWithScore(node=TextNode(text=text, id_=i, metadata=own), score=exp(-d)) for i, text, own, d in rows],
            [haystack.Document(id=i, content=text, meta=own, score=d) for i, text, own, d in rows],
        )

    def kept(self, adapter: str, flt: rf.Filter, query: str, user: rf.User) -> list[str | None]:
        """The chunks that this adapter keeps."""
        if adapter == "langchain":
            compressor = flt.as_langchain(metric="l2", user=user)
            return [doc.id for doc in compressor.compress_documents(self.langchain, query)]
        if adapter == "llamaindex":
            nodes = flt.as_llamaindex(metric="l2", exponential=True, user=user)
            kept = nodes.postprocess_nodes(self.llamaindex, query_str=query)
            return [node.node_id for node in kept]
        component = flt.as_haystack(metric="l2", user=user)
        return [doc.id for doc in component.run(query, self.haystack)["documents"]]


@dataclass
class Once:
    """A reranker that scores each text for each question once."""

    own: Reranker
    known: dict[tuple[str, str], float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.own.name

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        new = [text for text in dict.fromkeys(texts) if (query, text) not in self.known]
        scores = self.own.score(query, new) if new else ()
        self.known |= {(query, text): score for text, score in zip(new, scores, strict=True)}
        return [self.known[query, text] for text in texts]


def by_page(query: str, settings: Settings, user: rf.User, page: Resources) -> list[str]:
    """What the page replays, without drawing."""
    asked = asking.asked_question(query, "demo", settings, user, page)
    pool = asking.pool_of(asked, settings, page)
    pool = asking.complete_pool(asked, pool, settings, user, page)
    return [hit.id for hit in replay(pool, settings, user).kept]


@pytest.mark.model
@pytest.mark.parametrize(("user", "profiles"), USERS)
def test_all_keep_the_same_chunks_in_the_same_order(
    copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, user: rf.User, profiles: Sequence[str]
) -> None:
    read_once(monkeypatch)
    others = set()
    passed: dict[tuple[str, ...], Documents] = {}
    with OpenWorkspace.open(Deployment(data_dir=copy_demo(), catalogue_limit=CHUNKS - 1)) as opened:
        once = Once(opened.reranker(Settings().quality))
        made = {**opened._made, (Reranker, reranker_key(Settings().quality)): once}
        bench = replace(opened, embedder=Remembering(), _made=made)
        page = Resources(bench)
        backends, store = options.Place(collection="demo").backends(bench), bench.workspace.store()
        assert store.collection("demo").catalogue() is None
        for place, (name, query) in enumerate(bundled.queries("demo").items()):
            passed.clear()
            everywhere = place < SOURCES or place % IN_ALL == 0
            for profile in profiles if everywhere else profiles[: place % IN_ONE == 0]:
                loaded = options.load_config(profile, None, None, {})
                flt = rf.Filter(profile, reranker=once)
                store.catalogue_limit = CHUNKS
                asked = ask(query, loaded.settings, backends, user)
                kept = [hit.id for hit in asked.kept]
                assert [hit.id for hit in bench["demo"].search(query, profile, user=user)] == kept
                assert by_page(query, loaded.settings, user, page) == kept
                if place < SOURCES:
                    # As a collection that is too large for a catalogue.
                    store.catalogue_limit = CHUNKS - 1
                    large = bench["demo"].search(query, profile, user=user)
                    assert [hit.id for hit in large.kept] == kept, (profile, name)
                hits = entering_hits(asked.pool, asked.settings, asked.user)
                key = tuple(hit.id for hit in hits)
                if key not in passed:
                    passed[key] = Documents.of(hits)
                adapted = [passed[key].kept(each, flt, query, user) for each in ADAPTERS]
                assert all(each == adapted[0] for each in adapted), (profile, name)
                if adapted[0] != kept:
                    others.add((profile, name))
    assert others == {pair for pair in OTHER_SIDES if pair[0] in profiles}
