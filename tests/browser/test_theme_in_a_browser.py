"""Switching the theme in the menu, in a real browser: what the server coloured follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ragfilter.ingest import demo
from ragfilter.ui.look.theme import OUTCOMES

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = demo.queries()["cleric-ac6"]
GROUND = {"Light": "rgb(251, 251, 249)", "Dark": "rgb(16, 22, 23)"}
DRAWN_IN = """colour => {
  const probe = document.createElement("i")
  probe.style.color = colour
  return [...document.querySelectorAll(".st-key-curve path.point")]
    .some(point => point.style.fill === probe.style.color)
}"""


def test_the_theme_is_switched_with_one_run(
    open_tab: Callable[..., Any],
) -> None:
    sent: list[str | bytes] = []

    def count(frame: str | bytes) -> None:
        sent.append(frame)

    def watch(page: Page) -> None:
        page.on("websocket", lambda socket: socket.on("framesent", count))

    tab = open_tab({"profile": "full", "q": CLERIC}, watch=watch)
    page, pinned = tab.rest().expect_kept(2).page, OUTCOMES["pinned"]
    # The curve is drawn in the colours of the theme, and follows it with one run.
    page.wait_for_function(DRAWN_IN, arg=pinned.colour(dark=False))
    tab.rest()
    top = tab.keyed("ask-row").bounding_box()
    assert len(sent) == 1
    choose_theme(tab, "Dark")
    page.wait_for_function(DRAWN_IN, arg=pinned.colour(dark=True))
    tab.rest()
    assert len(sent) == 2

    # The component that watches the theme takes no space.
    page.add_style_tag(content=".st-key-theme { display: none }")
    expect(page.locator(".st-key-theme")).to_be_hidden()
    assert tab.keyed("ask-row").bounding_box() == top

    # It is switched on stage too, in every window.
    tab.click("present-button")
    expect(page.locator(".rf-question")).to_be_visible()
    for width, theme in ((1440, "Light"), (400, "Dark")):
        page.set_viewport_size({"width": width, "height": 900})
        choose_theme(tab.rest(), theme)
        expect(page.locator(".stApp")).to_have_css("background-color", GROUND[theme])
        # Closes the menu.
        page.locator(".rf-question").click()


def choose_theme(tab: Any, name: str) -> None:
    tab.page.get_by_test_id("stMainMenuButton").click()
    tab.page.get_by_test_id(f"stMainMenuItem-theme-{name}").click()
