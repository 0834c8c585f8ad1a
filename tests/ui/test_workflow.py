"""The path on every page: how far the user is, and what opens the next step. The page explains its words as the
glossary does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragfilter.ui.kit.guide import INCLUDED, NEEDS_LABELS, NEEDS_RUN, TERMS, steps
from scripts import glossary

HERE: dict[str, Any] = {
    "asked": False,
    "labelled": 0,
    "included": False,
    "measured": False,
    "tuned": False,
    "guarded": False,
}


@pytest.mark.parametrize(
    ("change", "following", "locked"),
    [
        ({}, "Ask", {"Measure", "Tune", "Guard"}),
        ({"asked": True}, "Label: 0 of 20", {"Measure", "Tune", "Guard"}),
        ({"asked": True, "labelled": 7}, "Label: 7 of 20", {"Guard"}),
        ({"asked": True, "labelled": 20}, "Measure", {"Guard"}),
        ({"asked": True, "labelled": 20, "measured": True}, "Tune", set()),
        ({"asked": True, "labelled": 20, "measured": True, "tuned": True}, "Guard", set()),
    ],
)
def test_the_next_step_and_what_is_locked(change: dict[str, Any], following: str, locked: set[str]) -> None:
    path = steps(**HERE | change)
    assert steps(**HERE | change | {"guarded": True})[-1].done
    assert next(step.name for step in path if not step.done) == following
    assert {step.name for step in path if step.locked} == locked
    assert {step.locked for step in path} <= {"", NEEDS_LABELS, NEEDS_RUN}


def test_labels_that_nobody_here_gave_are_told() -> None:
    told = [(step.signed, step.locked) for step in steps(**HERE | {"labelled": 20, "included": True})]
    assert told[:3] == [("Ask", ""), ("✓ Label", INCLUDED), ("Measure", "")]


def test_the_glossary_is_made_from_the_words_of_the_page() -> None:
    assert (Path(__file__).resolve().parents[2] / "docs" / "glossary.md").read_text("utf-8") == glossary.page()
    assert list(TERMS) == sorted(TERMS)
