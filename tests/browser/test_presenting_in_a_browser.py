"""Present mode by its keys, in a real browser: large type, each reason drops its passages, and back
again."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from ragfilter.ingest import demo

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = demo.queries()["cleric-ac6"]
SMALLEST_PX = 18
SMALL = """least => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const part = walker.currentNode.parentElement, box = part.getBoundingClientRect()
    const read = walker.currentNode.textContent.trim() && !part.closest('style, script, noscript')
    if (read && box.width && box.height && parseFloat(getComputedStyle(part).fontSize) < least)
      found.push(walker.currentNode.textContent)
  }
  return found
}"""
OpenTab = Callable[..., Any]


def test_a_result_is_shown_to_a_room_by_keys_alone(open_tab: OpenTab) -> None:
    tab = open_tab({"profile": "full", "q": CLERIC}, width=1920, height=1080)
    tab.rest().expect_kept(2)
    keys, page = tab.page.keyboard, tab.page
    keys.press("p")
    expect(page.locator(".rf-question")).to_have_text(CLERIC)
    expect(page.locator(".stSidebar")).to_be_hidden()
    said = page.locator(".rf-headline")
    expect(said).to_contain_text("2 pass the filter: ✕13 were about another armor class.")
    expect(said).to_contain_text("The prompt shrinks from 2,329 to 313 tokens, 87% less.")
    tab.rest()
    assert page.evaluate(SMALL, SMALLEST_PX) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert "present=true" in page.url

    # Before, everything that a plain search sends; then each reason drops its passages.
    scene, after = page.locator(".rf-scene"), page.locator(".rf-stack").last
    expect(scene).to_have_text("Everything found")
    expect(after.locator("b").first).to_have_text("15")
    tab.rest()
    keys.press("b")
    expect(scene).to_contain_text("2 passages pass the filter")
    expect(after.locator("[data-passage]")).to_have_count(2)
    tab.rest()
    keys.press("b")
    expect(scene).to_have_text("Everything found")
    tab.rest()
    keys.press("ArrowRight")
    expect(scene).to_contain_text("13 were about another armor class")
    expect(after.locator("b").first).to_have_text("2")
    # No frame stays across the picture after a click and a key.
    after.click()
    keys.press("b")
    expect(scene).to_have_text("Everything found")
    frame = "getComputedStyle(document.querySelector('.stMain'), '::before').display"
    assert page.evaluate(frame) == "none"
    keys.press("b")

    # Both answers are in the window; what only the unfiltered one says is marked.
    expect(tab.keyed("answer-filtered", "mark")).to_have_count(0)
    expect(tab.keyed("answer-unfiltered", "mark").last).to_be_in_viewport()

    # Left by a click, entered again by the key, and left by it.
    tab.click("present-button")
    tab.expect_kept(2).rest()
    keys.press("p")
    expect(page.locator(".rf-question")).to_be_visible()
    the_stage_fits_every_window_and_is_printed_on_one_page(tab)
    keys.press("p")
    tab.expect_kept(2)
    expect(tab.keyed("question", "input")).to_have_value(CLERIC)
    expect(page.locator(".stSidebar")).to_be_visible()

    # The controls show the current settings, and the next click changes none of them.
    tab.rest()
    expect(tab.keyed("panel-box", "[aria-checked=true]")).to_have_count(1)
    expect(tab.keyed("set-query_must-enabled").locator("input")).to_be_checked()
    in_force = page.url
    tab.click_row(1, "reason")
    expect(tab.chunk).to_be_visible()
    tab.rest().expect_kept(2)
    assert set(parse_qs(urlsplit(page.url).query)) <= {*parse_qs(urlsplit(in_force).query), "chunk"}

    # A key would be typed into the question.
    tab.ask("Which treasure maps are false?").click("present-button")
    whoever_it_is_shown_to_decides_what_is_there(tab)


def the_stage_fits_every_window_and_is_printed_on_one_page(tab: Any) -> None:
    for width in (1440, 1920, 900, 400):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.rest()
        assert tab.page.evaluate("document.querySelector('.stMain').scrollWidth <= innerWidth")
        if width > 900:
            (page,) = PdfReader(BytesIO(tab.page.pdf(format="A4"))).pages
            assert "Armor Class 6" in page.extract_text()
    tab.page.set_viewport_size({"width": 1920, "height": 1080})
    tab.rest()


def whoever_it_is_shown_to_decides_what_is_there(tab: Any) -> None:
    page, chooser = tab.page, tab.keyed("presented-to").get_by_role("combobox")
    secret = page.get_by_text(re.compile("Which Treasure Maps Are False"))
    expect(chooser).to_have_value("Guest")
    expect(secret).to_have_count(0)
    tab.pick("presented-to", "^Referee$")
    expect(secret.first).to_be_visible()
    expect(page).to_have_url(re.compile("level=3"))
    # The keys of the page work right after the choice, on Inspect too.
    tab.rest().page.keyboard.press("p")
    expect(tab.keyed("viewing")).to_contain_text("Referee")
    tab.rest().keyed("viewing", "button").click()
    tab.pick("seen-as", "^Guest$")
    page.keyboard.press("Escape")
    expect(page).not_to_have_url(re.compile("level="))
    tab.rest().page.keyboard.press("p")
    expect(chooser).to_have_value("Guest")
