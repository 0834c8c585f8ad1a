"""Without an LLM, both answers are there after every change, without a click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragfilter.errors import ModelError
from ragfilter.indexing.sentences import Sentences
from ragfilter.ingest import demo
from ragfilter.models.bundled import BundledEmbedder

pytestmark = pytest.mark.model

CLERIC = demo.queries()["cleric-ac6"]


def answered(page: Any) -> set[str]:
    """The sides that have an answer."""
    return {side for side in ("filtered", "unfiltered") if f"answer-{side}" in page.sent}


def test_every_change_is_answered(open_page: Callable[..., Any]) -> None:
    page = open_page({"q": CLERIC, "profile": "full"})
    changes: tuple[Callable[[], Any], ...] = (
        lambda: page.switch("query_must", False),
        lambda: page.slide("cutoff.relative_offset", 1.0),
        lambda: page.switch("quality", False),
        lambda: page.press("present-button"),
    )
    for change in changes:
        change()
        assert answered(page) == {"filtered", "unfiltered"}
        assert "answer" not in page.buttons


def test_a_failure_is_shown_until_quoting_succeeds(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page({"q": "Which dragons breathe acid?", "profile": "adaptive-gap"})

    def fails(*_: Any) -> Any:
        raise ModelError("The model is gone.")

    with monkeypatch.context() as patch:
        patch.setattr(BundledEmbedder, "embed", fails)
        patch.setattr(Sentences, "find", lambda *_: {})
        page.switch("cutoff", False).slide("retrieval.k", 40)
        assert "The model is gone." in page.html
    page.run()
    assert "The model is gone." not in page.html
    assert answered(page) == {"filtered", "unfiltered"}
