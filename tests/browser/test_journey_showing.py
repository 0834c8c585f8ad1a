"""A presenter shows the filter to others, from the first visit to the handout: by keyboard where
the page has keys, otherwise by mouse."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, expect
from pypdf import PdfReader

from ragfilter.ingest import bundled

pytestmark = [pytest.mark.browser, pytest.mark.model]

QUESTION, REPORT = bundled.queries("demo")["monsters-07"], "tell-me-about-owlbears.html"
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


def test_a_result_is_shown_compared_and_handed_out(open_tab: OpenTab, browser: Browser, tmp_path: Path) -> None:
    tab = open_tab(newcomer=True)
    ask_by_keyboard(tab)
    present(tab)
    compare(tab)
    # The link holds both sides. The report is named after the question.
    tab.click("copy-link")
    expect(tab.keyed("copy-link").get_by_role("status")).to_have_text("Link copied")
    box = tab.keyed("question", "input")
    box.fill("")
    box.press("Control+v")
    copied = dict(parse_qsl(urlsplit(box.input_value()).query))
    assert {"q": QUESTION, "a": "unfiltered", "b": "adaptive-gap"}.items() <= copied.items()
    with tab.rest().page.expect_download() as offered:
        tab.click("compare-report")
    assert offered.value.suggested_filename == REPORT
    offered.value.save_as(report := tmp_path / REPORT)
    context = browser.new_context(offline=True)
    read, requested = context.new_page(), list[str]()
    read.on("request", lambda request: requested.append(request.url))
    read.goto(report.as_uri())
    expect(read.locator("h1")).to_have_text(QUESTION)
    expect(read.locator("h3", has_text=re.compile("Only A keeps"))).to_be_visible()
    for width, dark in ((400, False), (1440, True)):
        read.set_viewport_size({"width": width, "height": 900})
        read.emulate_media(color_scheme="dark" if dark else "light")
        assert read.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shown = read.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (shown == "rgb(255, 255, 255)") is not dark
    assert requested == [report.as_uri()]
    context.close()


def ask_by_keyboard(tab: Any) -> None:
    """Go from the answered example of the first visit to the presenter's own question."""
    expect(tab.page.locator(".rf-headline")).to_contain_text("about another armor class")
    keys, box = tab.rest().page.keyboard, tab.keyed("question", "input")
    while not box.evaluate("box => box === document.activeElement"):
        keys.press("Tab")
    keys.press("Control+a")
    keys.type(QUESTION)
    keys.press("Enter")
    expect(tab.page.get_by_role("heading", level=1)).to_have_accessible_name(QUESTION)
    # A key of the page would be typed into the box.
    tab.rest().page.keyboard.press("Tab")


def present(tab: Any) -> None:
    """Drop the passages one reason at a time, by keys, and end with both answers in view."""
    page, keys = tab.page, tab.page.keyboard
    keys.press("p")
    expect(page.locator(".rf-question")).to_have_text(QUESTION)
    expect(page.locator(".stSidebar")).to_be_hidden()
    page.set_viewport_size({"width": 1920, "height": 1080})
    scene, stays = page.locator(".rf-headline"), page.locator(".rf-stack").last.locator("b").first
    tab.rest()
    assert page.evaluate(SMALL, SMALLEST_PX) == []
    first, end = re.compile("^Plain search found 15 passages.$"), "3 pass the filter"
    for words, left in ((first, 15), ("too far down the list", 11), (end, 3)):
        expect(scene).to_contain_text(words)
        expect(stays).to_have_text(str(left))
        expect(page.locator(".rf-fallen")).to_have_count(15 - left)
        tab.rest()
        keys.press("ArrowRight")
    for side in ("filtered", "unfiltered"):
        expect(tab.keyed(f"answer-{side}").get_by_role("paragraph").first).to_be_in_viewport()
    # One key goes from the end to the beginning and back. No frame stays across the picture.
    for words in (first, end):
        tab.rest()
        keys.press("b")
        expect(scene).to_contain_text(words)
    frame = "getComputedStyle(document.querySelector('.stMain'), '::before').display"
    assert page.evaluate(frame) == "none"
    (sheet,) = PdfReader(BytesIO(tab.rest().page.pdf(format="A4"))).pages
    assert "Owlbear" in sheet.extract_text()
    with tab.rest().page.expect_download() as offered:
        tab.click("present-report")
    assert offered.value.suggested_filename == REPORT
    assert QUESTION in offered.value.path().read_text("utf-8")
    # The audience is chosen here, and the keys work right after the choice.
    tab.pick("presented-to", "^Referee$")
    expect(page).to_have_url(re.compile("level=3"))
    tab.rest().pick("presented-to", "^Guest$")
    expect(page).not_to_have_url(re.compile("level="))
    tab.rest()
    keys.press("Escape")
    expect(tab.keyed("question", "input")).to_have_value(QUESTION)
    expect(page.locator(".stSidebar")).to_be_visible()


def compare(tab: Any) -> None:
    """Compare two profiles on the question."""
    tab.rest().page.get_by_role("link", name="Compare").press("Enter")
    said = tab.page.locator(".rf-headline")
    tab.pick("side-a-box", "^profile unfiltered$").pick("side-b-box", "^profile adaptive-gap$")
    expect(tab.page).to_have_url(re.compile(r"[?&]a=unfiltered&b=adaptive-gap"))
    expect(said).to_contain_text("only A keeps")
    tab.rest().choose("compare-step", "Answers")
    expect(tab.keyed("compare-answers")).to_contain_text("Owlbear")
    tab.rest()
