"""A panel is a fragment, except in a run that goes on to wait: a click would not end that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st

from ragfilter.ui.kit.rule_editor import rule_effect
from ragfilter.ui.session import waiting


@pytest.mark.parametrize(("waits", "alone"), [(False, ["panel"]), (True, [])])
def test_a_panel_of_a_run_that_waits_is_no_fragment(
    waits: bool, alone: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    drawn: list[str] = []

    def fragment(draw: Callable[[str], None]) -> Callable[[str], None]:
        made.append(draw.__name__)
        return draw

    def panel(word: str) -> None:
        drawn.append(word)

    monkeypatch.setattr(st, "fragment", fragment)
    waiting.unless(waits, panel)("here")
    assert made == alone
    assert drawn == ["here"]


@pytest.mark.parametrize(
    ("chosen", "waits"), [({}, True), ({rule_effect.WITH_ASKED: False}, False)]
)
def test_without_labels_a_run_waits_for_the_questions_asked_unless_switched_off(
    on: dict[str, bool], waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: Any = None
    monkeypatch.setattr(st, "session_state", on)
    monkeypatch.setattr(rule_effect, "labels", lambda work: None)
    monkeypatch.setattr(rule_effect, "is_under_way", lambda work, *, asked=False: asked)
    assert rule_effect.waits(work) is waits
