"""Precision, recall and F1: calculated figures, and the definitions as a law."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import Qrel, ScoredDoc, SetF, SetP, SetR, calc_aggregate

from ragfilter.evaluate.metrics import Counts, figures, precision_recall_f1

IDS = st.sets(st.sampled_from("abcdefgh"))


def test_worked_figures() -> None:
    for kept, relevant, expected in [
        # The owlbears of the Adaptive Filtering Algorithm: fixed k 5, then adaptive.
        (["owlbear", "lair", "owl", "bear", "bugbear"], {"owlbear", "lair"}, (0.4, 1.0, 4 / 7)),
        (["owlbear", "lair"], {"owlbear", "lair"}, (1.0, 1.0, 1.0)),
        (["a"], {"a", "b", "c", "d"}, (1.0, 0.25, 0.4)),
        (["x"], {"a"}, (0.0, 0.0, 0.0)),
        ([], set(), (1.0, 1.0, 1.0)),
        (["a"], set(), (0.0, 1.0, 0.0)),
        (["a", "a"], {"a"}, (1.0, 1.0, 1.0)),
    ]:
        scores = precision_recall_f1(kept, relevant)
        assert (scores.precision, scores.recall, scores.f1) == pytest.approx(expected)


@given(IDS.filter(bool), IDS.filter(bool))
def test_the_figures_are_those_of_ir_measures(kept: set[str], relevant: set[str]) -> None:
    judged = [Qrel("q", i, 1) for i in relevant]
    run = [ScoredDoc("q", i, 0.0) for i in kept]
    # trec_eval's beta is the square of this one.
    measures = {"precision": SetP, "recall": SetR, "f1": SetF, "f2": SetF(beta=4.0)}
    theirs = calc_aggregate(measures.values(), judged, run)
    ours = figures(Counts(len(kept), len(kept & relevant)), len(relevant))
    for name, measure in measures.items():
        assert float(ours[name]) == pytest.approx(theirs[measure], abs=1e-12), name


def test_arrays_are_scored_at_once() -> None:
    made = figures(Counts([0, 1, 4], [0, 1, 1], unlabelled=[0, 0, 2]), [0, 2, 2])
    assert made["f1"].tolist() == [1, pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert made["f1_most"].tolist() == [1, pytest.approx(2 / 3), pytest.approx(6 / 8)]
