"""From marks by keyboard to measured and tuned settings, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap", "collection": "demo"}
BEHOLDER = "What is a beholder?"
OpenTab = Callable[..., Any]


def visit(tab: Any, page: str) -> Any:
    tab.page.get_by_test_id("stTopNavLink").get_by_text(page, exact=True).click()
    return tab.rest()


def mark(tab: Any, key: str) -> None:
    """Press a key; the next chunk opens."""
    before = tab.chunk.locator("h3").inner_text()
    tab.page.keyboard.press(key)
    expect(tab.chunk.locator("h3")).not_to_have_text(before)
    tab.rest()


@pytest.mark.parametrize("width", [1440, 900])
def test_label_evaluate_and_tune(open_tab: OpenTab, width: int) -> None:
    tab = open_tab(OWLBEARS, width=width)
    expect(tab.kept).to_be_visible()
    for question in (None, BEHOLDER):
        if question:
            tab.keyed("question", "input").fill(question)
            tab.click("ask-button")
            expect(tab.kept).to_be_visible()
            tab.rest()
        tab.click_row(0)
        expect(tab.chunk.locator("h3")).to_be_visible()
        tab.rest()
        for key in ("2", "0", "1"):
            mark(tab, key)
    expect(tab.keyed("mark-undo", "button")).to_be_enabled()

    visit(tab, "Evaluate")
    tab.keyed("query-set-box").get_by_role("combobox").click()
    tab.page.get_by_role("option", name=re.compile("^labelled · 2")).click()
    expect(tab.keyed("evaluate", "button")).to_have_text(re.compile("Evaluate 2 questions"))
    tab.rest().click("evaluate")
    expect(tab.page.locator(".rf-strip[aria-label=Evaluation]")).to_contain_text("Oracle")
    tab.rest().choose("view-box", "Questions")
    expect(tab.keyed("queries-bar")).to_be_visible()
    tab.rest()
    table = tab.keyed("table").get_by_test_id("data-grid-canvas")
    # A layer over the canvas takes the click.
    table.click(position={"x": 150, "y": 36 + 16}, force=True)
    # The question opens in Inspect.
    expect(tab.kept).to_be_visible()
    expect(tab.keyed("question", "input")).to_have_value(re.compile("owlbears|beholder"))
    tab.rest()

    visit(tab, "Tune")
    tab.click("map")
    points = tab.keyed("map-chart").locator("path.point")
    expect(points.nth(2000)).to_be_attached()
    tab.rest()
    assert "cutoff.gap_threshold" not in tab.page.url
    square = points.nth(1925).bounding_box()
    tab.page.mouse.click(square["x"] + square["width"] / 2, square["y"] + square["height"] / 2)
    expect(tab.page).to_have_url(re.compile("cutoff.gap_threshold="))
    threshold = re.search(r"gap_threshold=([\d.]+)", tab.page.url)
    visit(tab.rest(), "Inspect")
    expect(tab.kept).to_be_visible()
    assert threshold is not None
    assert f"gap_threshold={threshold[1]}" in tab.page.url
