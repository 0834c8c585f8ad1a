"""When a run waits for questions, which a click on a fragment would not end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from ragfilter.ui.kit.rule_editor import rule_effect


@pytest.mark.parametrize(("on", "waits"), [({}, True), ({rule_effect.WITH_ASKED: False}, False)])
def test_without_labels_a_run_waits_for_the_questions_asked_unless_switched_off(
    on: dict[str, bool], waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    work: Any = SimpleNamespace(labels=None)
    monkeypatch.setattr(st, "session_state", on)
    monkeypatch.setattr(rule_effect, "is_under_way", lambda work, *, asked=False: asked)
    assert rule_effect.waits(work) is waits
