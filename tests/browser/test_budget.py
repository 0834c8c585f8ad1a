"""How much a page shows at first sight, at 1440 × 900 and with nothing opened."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.budget import first_window
from ragfilter.ingest import demo

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = {"q": demo.queries()["cleric-ac6"]}


@pytest.mark.parametrize(
    ("page", "profile", "controls", "words", "numbers"),
    [
        ("", "full", 40, 155, 30),
        ("", "adaptive-gap", 40, 155, 30),
        ("", "query-must", 40, 155, 30),
        ("Rules", "full", 45, 200, None),
        ("Evaluate", "full", 45, 200, None),
        ("Tune", "full", 45, 200, None),
        ("Compare", "full", 45, 200, None),
        ("Collections", "full", 45, 200, None),
    ],
)
def test_the_first_window_shows_little(
    open_tab: Callable[..., Any],
    page: str,
    profile: str,
    controls: int,
    words: int,
    numbers: int | None,
) -> None:
    link = {"profile": profile, "collection": "demo", "open": ""} | CLERIC
    tab = open_tab(link)
    tab.keyed("answer-unfiltered").wait_for()
    if page:
        tab.page.get_by_role("link", name=page, exact=True).first.click()
        expect(tab.page).to_have_url(re.compile(f"/{page.lower()}"))
    tab.rest()
    shown = first_window(tab.page)
    assert len(shown.controls) <= controls, shown.controls
    assert len(shown.words) <= words, " ".join(shown.words)
    assert numbers is None or len(shown.numbers) <= numbers, shown.numbers
