"""The path at the top of every page, and the tour that Help starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.model

CLERIC = {"q": "What does a 7th level cleric need to roll to hit an opponent with armor class 6?", "profile": "full"}
DROPPED = "attack-matrix-clerics-ac-7"


@pytest.mark.parametrize("name", ["inspect", "evaluate", "tune"])
def test_every_page_leads_to_the_next_step(open_page: Callable[..., Any], name: str) -> None:
    page = open_page(CLERIC)
    page.at.switch_page(f"pages/{name}.py")
    page.run()
    # The demo is labelled, but nothing was measured.
    assert {"Labels included", "Guard"} <= {each.strip() for each in page.html}
    if name == "evaluate":
        assert any("Now: Measure" in each for each in page.html)
    else:
        assert page.at.button(key="path-next").label == "Next: Measure"
    assert ("path-Tune" in page.buttons) is (name != "tune")
    assert "help-button" in page.buttons


def test_the_tour_starts_by_hand_and_ticks_off_what_was_done(open_page: Callable[..., Any]) -> None:
    page = open_page(CLERIC)
    assert page.session.tour is None
    page.press("help-button").press("tour-begin")
    assert page.session.tour == [False] * 3
    page.open_chunk(DROPPED)
    page.switch("query_must", False).switch("quality", False).switch("cutoff", False)
    page.slide("retrieval.k", 4)
    assert page.session.tour == [True] * 3
    page.press("tour-end")
    assert page.session.tour is None
