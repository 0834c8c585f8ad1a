"""Verdicts fetched for a need, and the chunks that their expansions bring in from the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from stores import OneVector, large, unit

from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import PoolCompleter, search_and_filter
from ragfilter.engine.pool import without_failures
from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, User
from ragfilter.protocols import Delta, Message, Vectors
from ragfilter.results.document import document, trace_text
from ragfilter.results.summary import summary
from ragfilter.settings.config import load
from ragfilter.stores.chroma import ChromaStore
from ragfilter.stores.copies import StoredRow


class Judging:
    """A judge that answers as `said` says for every chunk, and counts what it is asked."""

    name = "scripted"

    def __init__(self, **said: str) -> None:
        self.said = said
        self.asked: list[str] = []

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Delta]:
        self.asked.append(messages[-1].content)
        yield Delta("\n".join(f"{i} -> {action}" for i, action in self.said.items()))


LLM = load(profile="llm-filter", environ={}).settings.with_values({"judge.max_chunks": 2})


def linked(store: ChromaStore, **more: dict[str, Any]) -> tuple[Backends, Vectors]:
    """root and other near the query; s1 … s5 far from it, each referring to the next."""
    if "linked" in [info.name for info in store.collections()]:
        store.delete("linked")
    near = unit(np.random.default_rng(6), 1)[0]
    rows = {
        "root": {"refs": ("s1", "gone", "root")},
        "other": {},
        **{f"s{n}": {"refs": (f"s{n + 1}",)} for n in range(1, 6)},
    }
    side = unit(np.random.default_rng(7), len(rows))
    collection = store.create("linked", embedder="given")
    collection.write(
        [
            StoredRow(
                Chunk(i, f"text of {i}", f"Title of {i}", **{**fields, **more.get(i, {})}),  # type: ignore[arg-type]
                near if i in ("root", "other") else (-near + 0.1 * vector).astype(np.float32),
            )
            for (i, fields), vector in zip(rows.items(), side, strict=True)
        ]
    )
    return Backends(collection, OneVector({}, near)), near


def test_an_expansion_brings_whole_chunks_from_the_store(store: ChromaStore) -> None:
    backends, _ = linked(store)
    chat, kept = Judging(root="EXPAND_3"), ["root", "s1", "s2", "s3"]
    result = search_and_filter("q", LLM, replace(backends, chat=chat))
    assert [hit.id for hit in result.kept] == kept
    assert [hit.chunk.text for hit in result.kept] == [f"text of {i}" for i in kept]
    # The distant ones are not similar enough to be shown, but are still brought in.
    assert "id: root\n" in chat.asked[0]
    assert "id: s1\n" not in chat.asked[0]


def test_expansion_reaches_what_the_pool_does_not_hold(store: ChromaStore) -> None:
    backends, near = linked(store)
    n = 500
    vectors = (near + 0.05 * unit(np.random.default_rng(8), n)).astype(np.float32)
    backends.collection.write(  # type: ignore[attr-defined]
        [StoredRow(Chunk(f"f{i}", "filler"), vector) for i, vector in enumerate(vectors)]
    )
    chosen = LLM.with_values({"retrieval.pool_size": 10})
    result = search_and_filter("q", chosen, replace(backends, chat=Judging(root="EXPAND_5")))
    pooled = {hit.id for hit in result.pool.hits}
    assert not pooled & {"s1", "s2", "s3", "s4", "s5"}
    assert [hit.id for hit in result.kept] == ["root", "s1", "s2", "s3", "s4", "s5"]
    brought = result.kept[1:]
    assert [(h.rank, h.found_by) for h in brought] == [(0, "expansion:root")] * 5
    assert all(3.5 < h.distance < 4.5 for h in brought)
    # The number of retrieved chunks is the same everywhere, without those brought in.
    found = len(pooled)
    assert summary(result).retrieved == document(result)["retrieved"] == found
    assert f"Found: {found} hits" in trace_text(result)
    assert f"Result: 6 chunks of {found}," in trace_text(result)


def test_clearance_in_an_expansion_with_and_without_push_down(store: ChromaStore) -> None:
    backends, _ = linked(store, s2={"clearance": 3})
    judged = replace(backends, chat=Judging(root="EXPAND_5"))
    on, user = LLM.with_values({"clearance.enabled": True}), User(1)
    for each in (judged, large(judged)):
        result = search_and_filter("q", on, each, user)
        assert [hit.id for hit in result.kept] == ["root", "s1"]
    pushed = search_and_filter("q", on, large(judged), user).pool
    assert "text of s2" not in str(pushed)
    # A hidden text is not fetched otherwise either, except for the page: another view of the same
    # pool then needs no further call.
    assert "text of s2" not in str(search_and_filter("q", on, judged, user).pool.hits)
    pool = search_and_filter("q", on, judged, user, wide=True).pool
    cleared = replay(pool, on, User(3))
    assert [hit.id for hit in cleared.kept] == ["root", "s1", "s2", "s3", "s4", "s5"]


def test_the_file_pattern_limits_the_search_and_not_the_references(store: ChromaStore) -> None:
    backends, _ = linked(store, root={"source": "api.yaml"}, s1={"source": "models.yaml"})
    chosen = LLM.with_values({"retrieval.source_pattern": "api.yaml"})
    result = search_and_filter("q", chosen, replace(backends, chat=Judging(root="EXPAND_1")))
    assert [(h.id, h.chunk.source) for h in result.kept] == [("root", "api.yaml"), ("s1", "models.yaml")]


def test_a_failed_judge_can_be_asked_again(store: ChromaStore) -> None:
    backends, _ = linked(store)
    pool = search_and_filter("q", LLM, replace(backends, chat=Judging())).pool
    failed = replay(pool, LLM)
    assert failed.needs == ()
    assert "the judge failed" in failed.trace("judge").note
    again = replay(without_failures(pool, "judge"), LLM)
    assert [need.kind for need in again.needs] == ["judge"]
    completion = PoolCompleter(LLM, replace(backends, chat=Judging(root="KEEP")))
    pool = completion.complete(without_failures(pool, "judge"), again.needs)
    assert [hit.id for hit in replay(pool, LLM).kept] == ["root"]
