"""A caller's own results over labelled queries, measured and tuned without searching again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ragfilter as rf
from ragfilter.errors import InputError

DOCS = [{"id": f"c{n}", "text": f"text {n}"} for n in range(30)]
FAR = [0.2, 0.22, 0.24, 0.26, 0.8] + [0.9 + 0.01 * n for n in range(25)]
QRELS = {"one": {"c0": 1, "c1": 2, "c2": 1, "c3": 1}, "two": {"c0": 1, "c9": 1, "c1": 0}}


def results(profile: str = "adaptive-gap") -> dict[str, rf.Result]:
    flt = rf.Filter(profile)
    return {i: flt("Who?", DOCS, FAR, metric="cosine") for i in ("one", "two", "bare")}


def test_results_are_measured_by_their_labels() -> None:
    made = rf.measure(results(), QRELS)
    kept = {row.id: (row.filtered.kept, row.filtered.relevant_kept) for row in made.rows}
    assert kept == {"one": (4, 4), "two": (4, 1)}
    assert made.filtered.f1 == pytest.approx((1 + 2 * 1 / (4 + 2)) / 2)
    assert made.unlabelled == ("bare",)
    assert made.rows[1].lost == ("c9",)


def test_numpy_s_numbers_are_labels() -> None:
    grades = {i: {c: np.int64(g) for c, g in labels.items()} for i, labels in QRELS.items()}
    assert rf.measure(results(), grades).rows == rf.measure(results(), QRELS).rows


@pytest.mark.parametrize("labels", [["c0", "c1"], {"c0": "high"}, {"c0": 1.5}])
def test_what_are_no_labels_is_one_line(labels: Any) -> None:
    with pytest.raises(InputError, match="The labels of 'one' are") as raised:
        rf.measure(results(), {"one": labels})
    assert raised.value.remedy


def test_what_is_tuned_is_no_worse_than_before() -> None:
    made = rf.tune(results(), QRELS, measure="f2")
    assert (made.queries, str(made.target)) == (2, "f2")
    assert rf.Filter(made.tuned.settings).settings == made.tuned.settings


class Knowing:
    """A reranker that knows the last chunks to be relevant."""

    name = "knowing"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [int(text.split()[-1]) / 100 for text in texts]


def test_reranking_is_tried_over_scores_that_the_results_have() -> None:
    qrels = {"one": {"c29": 1}, "two": {"c29": 1, "c28": 1}}
    with pytest.raises(rf.RagfilterError, match="scores of the first 50 hits are missing, as for"):
        rf.tune(results(), qrels, rerank=True)
    always = {"quality.enabled": True, "quality.mode": "always", "quality.max_top_k": 50}
    reranking = rf.Settings().with_values({**always, "quality.reranker_top_k": 50})
    flt = rf.Filter(reranking, reranker=Knowing())
    scored = {i: flt("Who?", DOCS, FAR, metric="cosine") for i in qrels}
    off = flt.settings.with_values({"quality.enabled": False})
    scored = {i: replace(each, settings=off) for i, each in scored.items()}
    tuned = rf.tune(scored, qrels, rerank=True).only("fixed").tuned.settings
    assert (tuned.quality.enabled, tuned.quality.mode) == (True, "always")
    assert not rf.tune(scored, qrels).only("fixed").tuned.settings.quality.enabled


@pytest.mark.parametrize(
    ("given", "qrels", "message"),
    [
        (results(), {}, "Only 0 of these queries have labels"),
        ({**results(), "two": results("unfiltered")["two"]}, QRELS, "different settings"),
    ],
)
def test_what_cannot_be_measured_is_one_line(
    given: dict[str, rf.Result], qrels: dict[str, dict[str, int]], message: str
) -> None:
    with pytest.raises(rf.RagfilterError, match=message):
        rf.measure(given, qrels)


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ({"one": {"x1": 1}, "two": {"x2": 1}}, "None of the labelled ids, such as 'x1', is among"),
        ({"one": {"c0": 0}, "two": {"c1": 0}}, "No chunk is labelled as relevant"),
    ],
)
def test_labels_that_say_nothing_of_the_hits_give_no_figures(qrels: dict[str, dict[str, int]], message: str) -> None:
    for call in (rf.measure, rf.tune):
        with pytest.raises(rf.RagfilterError, match=message):
            call(results(), qrels)


def test_verdicts_of_a_judge_are_not_tuned_over() -> None:
    judged = {
        i: replace(each, settings=each.settings.with_values({"judge.enabled": True})) for i, each in results().items()
    }
    with pytest.raises(rf.RagfilterError, match="The judge is on"):
        rf.tune(judged, QRELS)
