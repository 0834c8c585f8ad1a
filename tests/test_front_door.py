"""`import ragfilter as rf`: what a caller passes, and what comes back."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragfilter as rf
from ragfilter.layers.quality import reranker_key
from ragfilter.library.documents import examine
from ragfilter.model import Hit
from ragfilter.settings.profiles import PROFILES

GAP = (0.12, 0.18, 0.22, 0.35, 0.50)
"""Adaptive Filtering Algorithm, first example: the gap of 0.15 after hit 4, with the largest."""
ALWAYS = rf.Settings().with_values({"quality.enabled": True, "quality.mode": "always"})
QUERY = "How strong is a troll?"
DOCS = [{"id": f"troll-{i}", "title": f"Troll {i}", "text": f"Trolls, part {i}."} for i in range(5)]


class Reversed:
    """A reranker that reverses the order."""

    name = "reversed"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [0.5 + 0.1 * i for i in range(len(texts))]


def test_every_name_of_the_front_door_is_there() -> None:
    assert [name for name in rf.__all__ if not hasattr(rf, name)] == []
    assert dir(rf) == rf.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rf.nothing  # noqa: B018


@pytest.mark.slow
def test_importing_it_loads_nothing_else() -> None:
    code = "import sys, ragfilter; print([m for m in sys.modules if m.startswith('ragfilter.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


MANY = 1000


def test_no_more_is_left_out_than_was_asked_for() -> None:
    """300 hits are nearer than a cliff of 0.5, and everything counts."""
    distances = [0.1 + i / 10_000 + (0.5 if i >= 300 else 0) for i in range(MANY)]
    docs = [f"text {i}" for i in range(MANY)]
    assert rf.cut(distances).kept == 300
    assert rf.cut(distances, strategy="fixed").kept == MANY
    seeds = rf.cut(distances, max_results=5)
    assert (seeds.kept, seeds.reason[-42:]) == (5, "; max_results = 5 leaves out the other 995")
    budget = {"max_context_tokens": 100 * MANY}
    wide = rf.Settings(cutoff={"max_results": MANY}, context=budget)
    assert len(rf.Filter(wide)(QUERY, docs, distances, metric="cosine")) == 300
    # A similarity of at least 0.5, which 300 have.
    alone = {"enabled": True, "min_top_k": MANY, "max_top_k": MANY, "reranker": "none"}
    plain = rf.Settings(quality=alone, cutoff={"enabled": False}, context=budget)
    result = rf.Filter(plain)(QUERY, docs, [1 - d for d in distances], metric="similarity")
    assert len(result) == 300
    # A limited result says which limit applied.
    few = rf.Filter(rf.Settings())(QUERY, docs, distances, metric="cosine")
    assert len(few) == 5
    assert {row.reason for row in few.dropped} == {"beyond the first 5"}
    assert "max_results = 5 leaves out the other 995" in repr(few)
    assert rf.Filter("").settings == rf.Filter().settings
    full = rf.Filter(rf.Settings(cutoff={"max_results": MANY}))
    fell = full(QUERY, docs, distances, metric="cosine").dropped[0]
    assert (fell.layer, fell.reason) == ("context", "the context budget of 4,000 tokens is full")


# --- what is passed


@dataclass
class LangChainDocument:
    page_content: str
    metadata: dict[str, Any]
    id: str | None = None


@dataclass
class HaystackDocument:
    id: str
    content: str
    meta: dict[str, Any]
    score: float | None = None


FORMS: dict[str, Callable[[dict[str, str]], Any]] = {
    "mapping": lambda d: d,
    "hit": lambda d: Hit(rf.Chunk(d["id"], d["text"], d["title"]), 9.0, 1),
    "langchain": lambda d: LangChainDocument(d["text"], {"title": d["title"]}, d["id"]),
    "haystack": lambda d: HaystackDocument(d["id"], d["text"], {"title": d["title"]}),
}


def test_documents_of_every_form_are_the_same_chunks() -> None:
    for form in FORMS:
        docs = [FORMS[form](doc) for doc in DOCS]
        result = rf.Filter("adaptive-gap")(QUERY, docs, GAP, metric="l2")
        assert [(h.id, h.chunk.title, h.chunk.text) for h in result] == [
            (d["id"], d["title"], d["text"]) for d in DOCS[:4]
        ], form


def test_metadata_of_another_library_are_its_own() -> None:
    """It may contain the parent's id, or a page that is not a number; no chunk is lost because of that."""
    docs = [
        LangChainDocument("one", {"id": "handbook.pdf", "page": "iv", "type": ["a"]}, "chunk-1"),
        LangChainDocument("", {"id": "handbook.pdf", "page": 3.5}, "chunk-2"),
        HaystackDocument("chunk-3", None, {"id": "handbook.pdf", "title": "Three"}),  # type: ignore[arg-type]
    ]
    result = rf.Filter("adaptive-gap")(QUERY, docs, GAP[:3], metric="cosine")
    chunks = [hit.chunk for hit in result]
    assert [(c.id, c.text, c.page) for c in chunks] == [
        ("chunk-1", "one", None),
        ("chunk-2", "", None),
        ("chunk-3", "Three", None),
    ]
    assert (chunks[0].metadata, chunks[2].title) == ({"page": "iv", "type": ["a"]}, "Three")
    assert [w for w in result.warnings if "page 'iv' is not a whole number" in w]


def test_what_disarms_a_rule_or_hides_a_chunk_from_everybody_is_told() -> None:
    for hides, said in [
        ({"clearance": "secret"}, "document 1: the clearance secret cannot be read"),
        ({"clearance": math.inf}, "document 1: the clearance Infinity cannot be read"),
        ({"department": ["ops"]}, 'document 1: the department ["ops"] cannot be read'),
    ]:
        docs = [{"text": "a", **hides}, {"text": "b", "query_must": "{"}] + ["c"] * 3
        result = rf.Filter("full")(QUERY, docs, GAP, metric="cosine", user=rf.User(9))
        assert [warning.partition(", so")[0] for warning in result.warnings[:1]] == [said]
        assert "document 2: query_must is kept but not used" in result.warnings[1], hides
        assert len(result.warnings) == 2, hides
        assert "1" not in {hit.id for hit in result.hits}, hides
        alone = rf.Filter("full")(QUERY, docs[:1])
        assert (len(alone.hits), alone.warnings) == (0, result.warnings[:1]), hides
        passed = rf.Filter("full")(QUERY, [rf.Chunk("x", "a", clearance="secret"), "b"])  # type: ignore[arg-type]
        assert "document 1: the clearance cannot be read" in passed.warnings[0], hides


def test_a_document_without_an_id_displaces_no_other() -> None:
    for ids, named in [
        ((None, None), ["1", "2"]),
        (("2", None), ["2", "3"]),
        (("2", None, "4", None), ["2", "5", "4", "6"]),
    ]:
        docs = [{"id": chunk_id, "text": "t"} for chunk_id in ids]
        assert [hit.id for hit in rf.Filter("adaptive-gap")(QUERY, docs)] == named


def test_pairs_and_scored_documents_bring_their_scores() -> None:
    pairs = [(doc, score) for doc, score in zip(DOCS, GAP, strict=True)]
    scored = [HaystackDocument(d["id"], d["text"], {}, 1 - s) for d, s in zip(DOCS, GAP, strict=True)]
    flt = rf.Filter("adaptive-gap")
    kept = [d["id"] for d in DOCS[:4]]
    assert [h.id for h in flt(QUERY, pairs, metric="cosine")] == kept
    assert [h.id for h in flt(QUERY, scored, metric="similarity")] == kept


@pytest.mark.parametrize(
    ("docs", "scores", "metric", "words"),
    [
        (DOCS, GAP, None, "no metric"),
        (DOCS, GAP[:2], "l2", r"^2 scores for 5 documents\."),
        (DOCS, GAP, "dot", "no metric 'dot'"),
        ([3], None, None, "unknown type int"),
        ([{"title": ""}], None, None, "text is missing"),
        ([["a", "b"]], [[0.1, 0.2]], "l2", r"Document 1 is a list.*\['documents'\]\[0\]"),
        (pd.DataFrame({"text": ["a"]}), None, None, "documents are a DataFrame.*to_dict"),
        (["a"], ["x"], "l2", "score of document 1"),
        ("one text", None, None, "documents are of the type str"),
        (DOCS, 0.5, "l2", "scores are of the type float"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(
    docs: list[Any], scores: Sequence[Any] | None, metric: Any, words: str
) -> None:
    with pytest.raises(rf.RagfilterError, match=words):
        rf.Filter("full")(QUERY, docs, scores, metric=metric)


def test_scores_that_contradict_their_metric_are_told() -> None:
    for scores, metric, warning in [
        ((0.1, 0.2, 0.3), "similarity", "similarities rise"),
        ((0.9, 0.5, 0.1), "cosine", "distances fall"),
        ((0.5, 0.5, 0.5), "l2", "are equal"),
        ((0.1, math.nan, 0.3), "l2", "1 of 3 scores is not a number"),
        ((0.1, 2.5, 3.0), "cosine", "outside 0 to 2"),
        ((0.1, None, 0.9), "cosine", "The metric is cosine, but 1 of 3 scores is missing"),
        ((None, None, None), None, ""),
        ((0.9, 0.5, 0.1), "similarity", ""),
        # inner products of vectors of another length
        ((-50.0, -40.0, -3.0), "ip", "3 of 3 scores, such as -50, lie outside 0 to 2"),
        (
            (0.7, 1.2, 2.6),
            "euclidean",
            "range of euclidean for unit vectors: thresholds may mean little. If they are squared, pass metric='l2'",
        ),
        ((17.2, 9.1, 0.4), "similarity", "such as BM25, pass metric='rank'"),
        ((1, 2, 3), "rank", "The scores rise from hit to hit"),
        (tuple(1 / (60 + place) for place in (1, 2, 3)), "similarity", "fusion (RRF)"),
        (tuple(1 / (60 + place) for place in (1, 2, 3)), "rank", ""),
        # pgvector's <#>
        ((-0.9, -0.8, -0.3), "ip", "negative inner products of unit vectors"),
        ((0.04, 0.03, 0.02), "similarity", ""),
    ]:
        warnings = rf.Filter("adaptive-gap")(QUERY, ["a", "b", "c"], scores, metric=metric).warnings
        assert warning in " ".join(warnings)
        assert bool(warnings) is bool(warning)


@pytest.mark.parametrize("profile", ["full", "adaptive-retrieval"])
@pytest.mark.parametrize("k", [2, 60])
def test_fused_ranks_are_no_similarities(k: int, profile: str) -> None:
    """The two searches share a third of their hits."""
    scores = sorted(1 / (k + i) + (1 / (k + 90 - i) if i % 3 == 0 else 0) for i in range(1, 61))
    flt = rf.Filter(profile)
    docs = [f"text {i}" for i in range(60)]
    result = flt(QUERY, docs, scores[::-1], metric="similarity")
    assert [warning for warning in result.warnings if "pass metric='rank'" in warning]
    ranked = flt(QUERY, docs, scores[::-1], metric="rank")
    assert (ranked.warnings, ranked.pool.space) == ((), "rank")
    assert [hit.id for hit in ranked] == [hit.id for hit in flt(QUERY, docs)]
    assert len(ranked) == (15 if profile == "full" else 3)


@given(st.sampled_from([0.05, 0.3, 0.75]), st.integers(0, 2**32 - 1), st.sampled_from([10, 60]))
def test_honest_similarities_are_not_doubted(mean: float, seed: int, n: int) -> None:
    """The nearest of five times as many, in full, and rounded as some stores do."""
    values = np.random.default_rng(seed).normal(mean, 0.05, 5 * n).clip(-1, 1)
    nearest = np.sort(values)[::-1][:n]
    for scores in (nearest, nearest.astype(np.float32), nearest.round(2)):
        assert [said for said in examine(scores.tolist(), "similarity") if "equal" not in said] == []


@given(st.sampled_from(sorted(PROFILES)), st.lists(st.floats(0.05, 1.4), min_size=1, max_size=120))
def test_of_unit_vectors_one_metric_is_as_good_as_another(profile: str, distances: list[float]) -> None:
    flt = rf.Filter(profile)

    def kept(metric: str, scores: list[float]) -> list[tuple[str, float]]:
        result = flt(QUERY, [f"text {i}" for i in range(len(scores))], scores, metric=metric)
        return [(hit.id, hit.distance) for hit in result]

    similarities = [1 - d for d in distances]
    cosines = [1 - s for s in similarities]
    assert kept("cosine", cosines) == kept("similarity", similarities)
    assert kept("euclidean", distances) == kept("l2", [d * d for d in distances])


def test_a_threshold_that_no_value_can_reach_is_refused() -> None:
    for name in ("distance_offset", "gap_threshold"):
        settings = rf.Settings().with_values({f"cutoff.{name}": 2.5})
        with pytest.raises(rf.RagfilterError, match=f"{name} = 2.5 can never be reached: cosine"):
            rf.Filter(settings)(QUERY, DOCS, GAP, metric="cosine")
    with pytest.raises(rf.RagfilterError, match=r"score_threshold = 0\.5 means nothing here"):
        rf.Filter("adaptive-retrieval")(QUERY, ["a", "b"], (10.0, 20.0), metric="ip")
    for scores in ((-0.9, -0.8, -0.3), (-0.6, 0.1, 0.2)):
        with pytest.raises(rf.RagfilterError) as error:
            rf.Filter("full")(QUERY, ["a", "b", "c"], scores, metric="ip")
        assert "similarity" in error.value.remedy
        assert "Normalise" not in error.value.remedy
        similar = [-score for score in scores]
        assert rf.Filter("full")(QUERY, ["a", "b", "c"], similar, metric="similarity")
    # Best + 0.4 is 0.52, and nothing is beyond it.
    assert len(rf.Filter(settings)(QUERY, DOCS, GAP, metric="l2")) == 5


@pytest.mark.parametrize(
    ("query", "user", "words"),
    [("", rf.User(), "query is empty"), (3, rf.User(), "query is 3"), ("q", "bob", "user is 'bob'")],
)
def test_a_query_is_text_and_a_user_a_user(query: Any, user: Any, words: str) -> None:
    with pytest.raises(rf.RagfilterError, match=words):
        rf.Filter("full")(query, DOCS, user=user)


# --- what comes back


class Scorer:
    """A reranker that gives these scores, whatever is asked."""

    def __init__(self, name: str, scores: Sequence[Any]) -> None:
        self.name = name
        self.scores = scores

    def score(self, query: str, texts: Sequence[str]) -> Any:
        return self.scores[: len(texts)]


@pytest.mark.parametrize(
    ("profile", "given", "said"),
    [
        ("adaptive-gap", {"reranker": Scorer("x", [])}, "the layer quality is off"),
        ("full", {"judge": "gpt"}, "the layer judge is off"),
        ("full", {"reranker": Scorer("x", [])}, ""),
    ],
)
def test_a_model_that_is_never_asked_is_told(
    profile: str, given: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    rf.Filter(profile, **given)
    assert said in caplog.text
    assert bool(caplog.text) is bool(said)


def test_of_two_scores_the_metric_tells_which_is_meant() -> None:
    docs = [{"text": "a", "distance": 0.1, "score": 0.9}, {"text": "b", "distance": 0.6, "score": 0.4}]
    for metric in ("cosine", "similarity"):
        result = rf.Filter("adaptive-gap")(QUERY, docs, metric=metric)
        assert [(hit.chunk.text, round(hit.distance, 3)) for hit in result.hits] == [("a", 0.1), ("b", 0.6)]
    graded = [{"text": "a", "score": "A+"}, {"text": "b", "score": "B"}]
    result = rf.Filter("adaptive-gap")(QUERY, graded, metric="similarity")
    assert (result.pool.space, "2 of 2 scores are missing" in result.warnings[0]) == ("rank", True)


def test_a_cross_encoder_has_one_name_whoever_passes_it() -> None:
    flt = rf.Filter(ALWAYS, reranker=Scorer("cross_encoder:folder/model", []))
    assert reranker_key(flt.settings.quality) == "cross_encoder:folder/model"
    assert flt.settings.quality.reranker_model == "folder/model"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rf.cut([0.9, 0.8, 0.3]), "fall from 0.9 to 0.8"),
        (lambda: rf.Filter(reranker=Scorer(3, [])), "lacks a name"),  # type: ignore[arg-type]
        (lambda: rf.tune({}, {}, folds=1), "folds is 1"),
        pytest.param(lambda: rf.Filter("full").as_langchain(metric="Cos"), "no metric 'Cos'", marks=pytest.mark.slow),
    ],
)
def test_misuse_is_one_of_our_errors_with_a_remedy(call: Callable[[], object], words: str) -> None:
    with pytest.raises(rf.RagfilterError, match=words) as error:
        call()
    assert error.value.remedy
