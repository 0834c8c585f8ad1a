"""Asking again for answers that an LLM gave or failed to give loses none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from faults import FAULTS, Handler, Serve, says

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"


def test_one_failed_answer_is_asked_for_alone_or_both_are_asked_again(
    open_page: Callable[..., Any],
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    calls: Counter[str],
) -> None:
    well = says("Owlbears attack on sight. [1]")

    def fails_at_second(handler: Handler, body: dict[str, Any]) -> None:
        behave = FAULTS["cuts the stream"] if len(handler.server.asked) == 2 else well
        behave(handler, body)

    monkeypatch.setenv("OPENAI_BASE_URL", serve(fails_at_second).url)
    monkeypatch.setenv("OPENAI_MODEL", "one-fails")
    page = open_page({"profile": "full", "q": CLERIC}).press("answer")
    assert calls["OpenAIChat.stream"] == 2
    assert "answer" in page.buttons
    # The replacement of a failed answer has its marks too.
    assert sum("<mark>" in each.value for each in page.at.html) == 1
    page.press("answer")
    assert calls["OpenAIChat.stream"] == 3
    assert "answer" not in page.buttons
    page.press("answer-again")
    assert calls["OpenAIChat.stream"] == 5
