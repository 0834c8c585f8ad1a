"""An LLM's answers are remembered; asking again makes new calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from faults import Serve, says

pytestmark = pytest.mark.model


def test_remembered_answers_are_asked_for_again(
    open_page: Callable[..., Any],
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    calls: Counter[str],
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", serve(says("Owlbears attack on sight. [1]")).url)
    monkeypatch.setenv("OPENAI_MODEL", "m")
    page = open_page({"profile": "adaptive-gap", "q": "Tell me about owlbears"})
    assert "answer-again" not in page.buttons
    page.press("answer")
    assert calls["OpenAIChat.stream"] == 2
    page.press("answer-again")
    assert calls["OpenAIChat.stream"] == 4
    assert "answer-again" in page.buttons
