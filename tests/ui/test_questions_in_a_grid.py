"""Texts shortened to fit into a column."""

from __future__ import annotations

from ragfilter.ui.kit.grid import fitting_questions

ALIKE = ("Who wins: 4th level fighter vs 7th level fighter?", "Who wins: 4th level fighter vs 7th level druid?")


def test_questions_are_cut_at_the_end_or_elsewhere_if_they_would_look_the_same() -> None:
    swamps, rider = "What lives in swamps?", "Which creatures can carry a rider through the air?"
    assert fitting_questions([swamps, rider], 236) == [swamps, "Which creatures can carry a rider th…"]
    assert fitting_questions([swamps, *ALIKE], 236) == [
        swamps,
        "Who wins: 4th level fighter vs …",
        "Who wins: 4th … 7th level druid?",
    ]
