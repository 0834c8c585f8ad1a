"""Precision, recall and F1: worked figures, and agreement with ir-measures."""

from __future__ import annotations

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import SetF, SetP, SetR

from ragfilter.evaluate.metrics import precision_recall_f1

IDS = st.sets(st.sampled_from("abcdefgh"))


@pytest.mark.parametrize(
    ("kept", "relevant", "expected"),
    [
        # The owlbears of the Adaptive Filtering Algorithm: fixed k 5, then adaptive.
        (["owlbear", "lair", "owl", "bear", "bugbear"], {"owlbear", "lair"}, (0.4, 1.0, 4 / 7)),
        (["owlbear", "lair"], {"owlbear", "lair"}, (1.0, 1.0, 1.0)),
        (["a"], {"a", "b", "c", "d"}, (1.0, 0.25, 0.4)),
        (["x"], {"a"}, (0.0, 0.0, 0.0)),
        ([], {"a"}, (0.0, 0.0, 0.0)),
        ([], set(), (1.0, 1.0, 1.0)),
        (["a"], set(), (0.0, 1.0, 0.0)),
        (["a", "a"], {"a"}, (1.0, 1.0, 1.0)),
    ],
)
def test_worked_figures(
    kept: list[str], relevant: set[str], expected: tuple[float, float, float]
) -> None:
    scores = precision_recall_f1(kept, relevant)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx(expected)


@settings(deadline=None)
@given(IDS, IDS.filter(bool))
def test_agrees_with_ir_measures(kept: set[str], relevant: set[str]) -> None:
    ours = precision_recall_f1(kept, relevant)
    qrels = {"q": dict.fromkeys(relevant, 1), "other": {"a": 1}}
    found = ir_measures.iter_calc(
        [SetP, SetR, SetF], qrels, {"q": dict.fromkeys(kept, 1.0), "other": {"a": 1.0}}
    )
    theirs = {m.measure: m.value for m in found if m.query_id == "q"}
    assert (ours.precision, ours.recall, ours.f1) == pytest.approx(
        (theirs[SetP], theirs[SetR], theirs[SetF])
    )
