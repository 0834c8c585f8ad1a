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
    monkeypatch.setenv("RAGFILTER_DIVERSITY__ENABLED", "true")
    monkeypatch.setenv("RAGFILTER_RETRIEVAL__K", "5")
    link = {
        "profile": "adaptive-retrieval",
        "q": "What is a lightsaber?",
        "quality.min_top_k": "4",
        "quality.reranker": "none",
        "diversity.enabled": "true",
        "retrieval.k": "5",
    }
    page = open_page(link)
    shown = "\n".join(page.html)
    assert shown.count("from the variable MIN_TOP_K") == 1
    assert shown.count("from the variable RAGFILTER_DIVERSITY__ENABLED") == 1
    # What is in a closed box is reported in front of it.
    page.at.session_state["more-quality"] = False
    page.at.session_state["others"] = False
    told = "\n".join(page.run().html)
    assert "From the environment: MIN_TOP_K." in told
    assert "From the environment: RAGFILTER_RETRIEVAL__K." in told
    assert "no chunk is good enough; first 4, 6, 8, 10: none" in shown
    assert "The context may not hold the answer: the chunks do not mention “lightsaber”" in shown
