"""Stores that return an order without scores. Source: Adaptive Retrieval System, "Fallback Behavior"."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from stores import OneVector
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.model import Chunk, PoolResult, Space
from ragfilter.protocols import Vectors
from ragfilter.results.document import document, trace_text
from ragfilter.results.summary import summary
from ragfilter.settings.config import load
from ragfilter.testing import MemoryCollection

N = 60
SECRET = 2
"""The place of a chunk that needs clearance 4."""


class Ordered(MemoryCollection):
    """A collection whose store returns ids, best first, with meaningless numbers."""

    name = "ordered"
    space: Space = "rank"

    def __init__(self) -> None:
        super().__init__(Chunk(f"c{i}", text=f"words {i}", clearance=4 if i == SECRET else 0) for i in range(1, N + 1))

    def nearest(self, vector: Vectors, n: int, **given: Any) -> list[tuple[str, float]]:
        return [(i, 0.0) for i, _ in super().nearest(vector, n, **given)]

    def distances(self, vector: Vectors) -> dict[str, float]:
        return {i: float(i[1:]) for i in self.all}


class Reranker:
    """Scores the last texts highest."""

    name = "last"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [place / len(texts) for place in range(1, len(texts) + 1)]


def asked(profile: str, **values: Any) -> PoolResult:
    settings = load(profile=profile, environ={}).settings
    settings = settings.with_values({k.replace("__", "."): v for k, v in values.items()})
    embedder = OneVector({}, np.ones(1, dtype=np.float32))
    backends = Backends(Ordered(), embedder, make_reranker=lambda _: Reranker())
    return search_and_filter("words", settings, backends, wide=True)


def kept(result: PoolResult) -> list[str]:
    return [hit.id for hit in result.kept]


@pytest.mark.parametrize("reranker", ["late_interaction", "none"])
def test_min_top_k_unchecked_and_said_so(
    reranker: str, caplog: pytest.LogCaptureFixture, snapshot: SnapshotAssertion
) -> None:
    with caplog.at_level(logging.WARNING, "ragfilter"):
        result = asked("adaptive-retrieval", quality__reranker=reranker)
    # The three that the user can see: clearance applies as usual.
    assert kept(result) == ["c1", "c3", "c4"]
    assert result.status == "ok"
    trace = result.trace("quality")
    assert trace.note == snapshot
    outcomes = [(d.outcome, d.reason) for d in trace.decisions][2:4]
    assert outcomes == [
        ("fallback", "the store gives no scores; among the first 3"),
        ("dropped", "the store gives no scores; beyond the first 3"),
    ]
    assert "ordered gives no distances" in caplog.text


def test_no_cliff_is_found_in_places(snapshot: SnapshotAssertion) -> None:
    result = asked("adaptive-gap")
    assert kept(result) == ["c1", "c2", "c3", "c4", "c5"]
    note = result.trace("cutoff").note
    assert note == snapshot
    assert summary(result).strategies == ()


def test_the_judge_is_shown_all_and_its_fallback_goes_by_place() -> None:
    result = asked("llm-filter")
    (need,) = result.needs
    assert (need.kind, len(need.chunk_ids)) == ("judge", 40)
    assert kept(result) == [f"c{i}" for i in range(1, 26)]


def test_what_is_reported_holds_no_invented_similarity() -> None:
    for profile in ["full", "adaptive-retrieval", "adaptive-gap", "llm-filter"]:
        result = asked(profile)
        made = json.loads(json.dumps(document(result), allow_nan=False))
        assert {(hit["similarity"], hit["gap"]) for hit in made["hits"]} == {(None, None)}, profile
        assert "nan" not in trace_text(result), profile
