"""Rerank scores fetched for a need: late interaction, a real cross-encoder, and every failure."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import sleep

import pytest
from stores import OneVector, filled
from syrupy.assertion import SnapshotAssertion
from waiting import PATIENT_S, SILENT_S, ends_after

from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.errors import ModelError
from ragfilter.evaluate.evaluation import evaluate
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.query_records import measure
from ragfilter.evaluate.variants import CURRENT, Variant
from ragfilter.models.rerankers import CrossEncoderReranker
from ragfilter.settings.config import load
from ragfilter.stores.chroma import ChromaStore


class Scores:
    name = "late_interaction"

    def __init__(self, error: bool = False) -> None:
        self.error = error
        self.seen: list[str] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.seen += texts
        if self.error:
            raise ModelError("no such model", remedy="Choose another.")
        return [0.9 if "7" in text else 0.1 for text in texts]


RERANK = load(profile="adaptive-retrieval", environ={}).settings.with_values(
    {"quality.score_threshold": 1.0, "quality.max_top_k": 50}
)


def test_run_gets_the_rerank_scores_that_are_pending(store: ChromaStore) -> None:
    _, vector = filled(store, [None] * 10, 4)
    scores = Scores()
    backends = Backends(store.collection("loop"), OneVector({}, vector), lambda _: scores)
    chosen = RERANK.with_values({"clearance.enabled": False})
    result = search_and_filter("q", chosen, backends)
    assert result.needs == ()
    assert [hit.chunk.text for hit in result.kept] == ["text 7"]


def test_a_failing_reranker_is_a_fallback_not_an_error(store: ChromaStore) -> None:
    _, vector = filled(store, [None] * 10, 4)
    backends = Backends(store.collection("loop"), OneVector({}, vector), lambda _: Scores(True))
    result = search_and_filter("q", RERANK.with_values({"clearance.enabled": False}), backends)
    assert result.status == "low_quality_results"
    assert "no such model" in result.trace("quality").note


class Slow(Scores):
    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        sleep(0.3)
        return super().score(query, texts)


@pytest.mark.parametrize(("reranker", "fell_back"), [(Scores(), False), (Scores(error=True), True), (Slow(), False)])
def test_what_is_measured_says_where_a_model_failed(store: ChromaStore, reranker: Scores, fell_back: bool) -> None:
    """And waits longer than a user would."""
    _, vector = filled(store, [None] * 10, 4)
    backends = Backends(store.collection("loop"), OneVector({}, vector), lambda _: reranker)
    chosen = RERANK.with_values({"clearance.enabled": False, "quality.reranker_timeout_ms": 100})
    labels = Labels({"q": "q"}, {"q": {"c7": 1}})
    measured = evaluate(labels.queries, labels.qrels, chosen, backends)
    assert [row.waiting for row in measured.rows] == [fell_back]
    alone = (Variant(CURRENT, "settings", chosen),)
    [[record]] = measure(labels, alone, backends)
    assert record.waiting == fell_back


CROSS = RERANK.with_values({"clearance.enabled": False, "quality.reranker": "cross_encoder", "quality.max_top_k": 10})


@pytest.mark.parametrize(
    ("name", "timeout_s", "says"),
    [
        ("nowhere", 300.0, "cannot be loaded"),
        ("headless", 300.0, "not a cross-encoder"),
        ("three", 300.0, "3 scores per text"),
        ("one", 0.0, "no answer within 0 s"),
    ],
)
def test_a_cross_encoder_that_fails_is_a_visible_fallback(
    name: str, timeout_s: float, says: str, store: ChromaStore, cross_encoders: Path
) -> None:
    _, vector = filled(store, [None] * 10, 4)
    model = CrossEncoderReranker(str(cross_encoders / name), load_timeout_s=timeout_s)
    backends = Backends(store.collection("loop"), OneVector({}, vector), lambda _: model)
    settings = CROSS.with_values({"quality.mode": "always", "quality.score_threshold": 0.0})
    result = search_and_filter("the owl", settings, backends)
    trace = result.trace("quality")
    assert says in trace.note
    assert trace.note.endswith("candidates are checked by distance instead")
    # The nearest three, as without a reranker, each marked.
    assert [hit.rank for hit in result.kept] == [1, 2, 3]
    kept = [d for d in trace.decisions if d.outcome != "dropped"]
    words = "the reranker failed"
    assert [(d.outcome, words in d.reason) for d in kept] == [("fallback", True)] * 3


class Hanging:
    """A reranker whose scores never come."""

    name = "hanging"

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.over = threading.Event()

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.set()
        self.over.wait(SILENT_S)
        return [0.9] * len(texts)


class Odd:
    """A custom reranker that does not follow the protocol."""

    name = "odd"

    def __init__(self, score: Callable[[int], list[float]]) -> None:
        self.made = score

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return self.made(len(texts))


@pytest.mark.parametrize(
    ("score", "says"),
    [
        (lambda n: [0.5] * (n - 1), "odd did not give a finite score for each of 10 chunks"),
        (lambda n: [math.nan] * n, "odd did not give a finite score for each of 10 chunks"),
        (lambda n: [1 / 0], "the reranker failed (ZeroDivisionError)"),
    ],
    ids=["too few", "nan", "crash"],
)
def test_an_odd_reranker_is_a_visible_fallback(
    score: Callable[[int], list[float]], says: str, store: ChromaStore
) -> None:
    _, vector = filled(store, [None] * 10, 4)
    backends = Backends(store.collection("loop"), OneVector({}, vector), lambda _: Odd(score))
    settings = CROSS.with_values({"quality.mode": "always", "quality.score_threshold": 0.0})
    result = search_and_filter("the owl", settings, backends)
    assert says in result.trace("quality").note
    assert [hit.rank for hit in result.kept] == [1, 2, 3]


def test_scores_that_do_not_come_in_time_are_a_visible_fallback(
    store: ChromaStore, snapshot: SnapshotAssertion
) -> None:
    _, vector = filled(store, [None] * 10, 4)
    hanging = Hanging()
    backends = Backends(store.collection("loop"), OneVector({}, vector), lambda _: hanging)
    values = {"quality.mode": "always", "quality.score_threshold": 0.0}
    settings = CROSS.with_values({**values, "quality.reranker_timeout_ms": 200})
    with ends_after(0.2):
        result = search_and_filter("the owl", settings, backends)
    assert hanging.asked.wait(PATIENT_S)
    hanging.over.set()
    assert result.trace("quality").note == snapshot
    assert [hit.rank for hit in result.kept] == [1, 2, 3]
