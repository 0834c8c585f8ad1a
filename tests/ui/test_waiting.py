"""When a run waits for questions, which a click on a fragment would not end."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st

from ragfilter.ui.kit.rule_editor import effect, labelled


@pytest.mark.parametrize(("chosen", "waits"), [({}, True), ({effect.WITH_ASKED: False}, False)])
def test_without_labels_a_run_waits_for_the_questions_asked_unless_switched_off(
    chosen: dict[str, bool], waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: Any = None
    monkeypatch.setattr(st, "session_state", chosen)
    monkeypatch.setattr(labelled, "labels", lambda work: None)
    monkeypatch.setattr(labelled, "is_under_way", lambda work, *, asked=False: asked)
    assert effect.waits(work) is waits
