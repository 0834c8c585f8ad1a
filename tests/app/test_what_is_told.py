"""What the page reports by itself: where a value came from, how far quality looked, and that a
context may not contain the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.model


def test_a_question_that_nothing_answers(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIN_TOP_K", "4")
    link = {
        "profile": "adaptive-retrieval",
        "q": "What is a lightsaber?",
        "quality.min_top_k": "4",
        "quality.reranker": "none",
    }
    page = open_page(link)
    shown = "\n".join(page.html)
    assert shown.count("from the variable MIN_TOP_K") == 1
    # What is in a closed box is reported in front of it.
    page.at.session_state["more-quality"] = False
    assert "From the environment: MIN_TOP_K." in "\n".join(page.run().html)
    assert "no chunk is good enough; first 4, 6, 8, 10: none" in shown
    assert "The context may not hold the answer: the chunks do not mention “lightsaber”" in shown
