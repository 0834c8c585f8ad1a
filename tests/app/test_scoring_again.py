"""A reranker that timed out once: reported on the page, and only tried again by its button."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from waiting import SILENT_S

from ragfilter.models.rerankers import LateInteraction

pytestmark = pytest.mark.model

QUESTION = "Is there any starship in this book?"
LINK = {"profile": "adaptive-retrieval", "quality.mode": "always",
        "quality.reranker_timeout_ms": "500"}  # fmt: skip


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until this event is set, a reranker hangs."""
    over = threading.Event()
    score = LateInteraction.score

    def late(self: LateInteraction, query: str, texts: Any) -> list[float]:
        over.wait(SILENT_S)
        return score(self, query, texts)

    monkeypatch.setattr(LateInteraction, "score", late)
    yield over
    over.set()


def test_scores_that_came_too_late_can_be_asked_for_again(
    slow: threading.Event, open_page: Callable[..., Any], calls: Counter[str]
) -> None:
    page = open_page(LINK | {"q": QUESTION})
    other = open_page(LINK | {"q": QUESTION})
    assert calls["LateInteraction.score"] == 2
    slow.set()
    for each in (page, other.run()):
        assert each.at.button(key="need-rerank").label.startswith("Score again: ")
    # More time causes no call: a slider asks nobody.
    calls.clear()
    page.slide("quality.reranker_timeout_ms", 60_000)
    assert not calls
    page.press("need-rerank")
    assert "need-rerank" not in page.buttons
    assert {row["outcome"] for row in page.rows if row["place"]} <= {"kept"}
    assert "need-rerank" not in other.run().buttons


def test_a_reranker_that_cannot_be_had_is_not_offered_again(open_page: Callable[..., Any]) -> None:
    cross = {"quality.reranker": "cross_encoder", "quality.reranker_model": "nobody/no-such-model"}
    page = open_page({**LINK, "quality.reranker_timeout_ms": "60000", **cross, "q": QUESTION})
    assert "need-rerank" not in page.buttons
    told = [warning.value for warning in page.at.warning]
    assert len(told) == 1
    for part in ("The reranker cross\\_encoder failed", "is not installed", "hf download",
                 "Then ask the question again."):  # fmt: skip
        assert part in told[0]
    # Another one is available, and only its scores are shown.
    page.at.selectbox(key="set-quality-reranker").set_value("late_interaction")
    page.run().press("need-rerank")
    assert not page.at.warning
    assert any(row["rerank_score"] for row in page.rows)
    page.at.selectbox(key="set-quality-reranker").set_value("cross_encoder")
    assert not any(row["rerank_score"] for row in page.run().rows)
    assert "need-rerank" not in page.buttons
    assert "cross\\_encoder failed" in page.at.warning[0].value
