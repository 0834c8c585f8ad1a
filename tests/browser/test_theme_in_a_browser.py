"""A switch of the theme in the menu, in a real browser: what the server coloured follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ragfilter.ingest import demo
from ragfilter.ui.look.theme import OUTCOMES

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = demo.queries()["cleric-ac6"]
DRAWN_IN = """colour => {
  const probe = document.createElement("i")
  probe.style.color = colour
  return [...document.querySelectorAll(".st-key-curve path.point")]
    .some(point => point.style.fill === probe.style.color)
}"""


def test_the_curve_follows_the_theme_with_one_run_a_switch(open_tab: Callable[..., Any]) -> None:
    sent: list[str | bytes] = []

    def count(frame: str | bytes) -> None:
        sent.append(frame)

    def watch(page: Page) -> None:
        page.on("websocket", lambda socket: socket.on("framesent", count))

    tab = open_tab({"profile": "full", "q": CLERIC}, watch=watch)
    page, pinned = tab.rest().expect_kept(2).page, OUTCOMES["pinned"]
    page.wait_for_function(DRAWN_IN, arg=pinned.colour(dark=False))
    tab.rest()
    top = tab.keyed("ask-row").bounding_box()
    assert len(sent) == 1

    page.get_by_test_id("stMainMenuButton").click()
    page.get_by_test_id("stMainMenuItem-theme-Dark").click()
    page.wait_for_function(DRAWN_IN, arg=pinned.colour(dark=True))
    tab.rest()
    assert len(sent) == 2

    # What watches the theme takes no room.
    page.add_style_tag(content=".st-key-theme { display: none }")
    expect(page.locator(".st-key-theme")).to_be_hidden()
    assert tab.keyed("ask-row").bounding_box() == top
