"""The layout of the page: what appears or disappears neither moves nor covers anything, and every
width shows all that can be clicked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from ragfilter.ingest import demo
from ragfilter.ui.session.state import PANELS

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = {"q": demo.queries()["cleric-ac6"], "profile": "full", "collection": "demo"}
OpenTab = Callable[..., Any]
COVERED = """chart => {
  const box = part => part.getBoundingClientRect()
  const labels = [...chart.querySelectorAll(".annotation-text")]
  const drawn = [...labels, ...chart.querySelectorAll("path.point, .bars path")]
  const meet = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  return labels.flatMap(label => drawn
    .filter(other => other !== label && meet(box(label), box(other)))
    .map(other => [label.textContent, other.textContent || other.parentElement.className.baseVal]))
}"""
"""The labels of a chart that cover a part of another label, of a point or of a bar."""


WIDTHS = (400, 640, 960, 1280, 1440, 1920)
"""Of windows in pixels; 960 and 1280 are those of 1440 and 1920 at 150%."""
OVERFLOW = """() => {
  const main = document.querySelector(".stMain")
  return main.scrollWidth > main.clientWidth || document.documentElement.scrollWidth > innerWidth
}"""
MEETING = """parts => {
  const boxes = parts.map(part => part.getBoundingClientRect())
  const meet = (a, b) =>
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  return parts.flatMap((one, n) => parts.slice(n + 1)
    .filter((_, m) => meet(boxes[n], boxes[n + 1 + m]))
    .map(other => [one.innerText, other.innerText]))
}"""
"""The pairs of elements of which one covers a part of the other."""


def expect_no_overflow(tab: Any) -> None:
    """No window cuts off a part of the page or makes it scroll sideways."""
    for width in WIDTHS:
        tab.page.set_viewport_size({"width": width, "height": 900})
        # A table takes its new width a moment after the window has.
        tab.rest().page.wait_for_function(f"() => !({OVERFLOW})()")
    tab.page.set_viewport_size({"width": 1440, "height": 900})
    tab.rest()


def apart(one: Locator, other: Locator) -> bool:
    """Whether neither covers a part of the other."""
    a, b = one.bounding_box(), other.bounding_box()
    assert a is not None
    assert b is not None
    beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
    return beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]


def test_the_strip_stays_where_it_is_while_the_page_searches(open_tab: OpenTab) -> None:
    # What is shown for a moment only is drawn nevertheless.
    tab = open_tab(CLERIC, busy=True).rest().expect_kept(2)
    tab.watch()
    # Questions that no other test asks this server, whose searches it remembers.
    for question in ("Who guards the strip?", "What stays where it was?"):
        tab.keyed("question", "input").fill(question)
        tab.page.keyboard.press("Enter")
        expect(tab.page).to_have_url(re.compile(question.split()[1]))
        tab.rest()
    assert tab.page.evaluate("window.waited")
    assert len(tab.page.evaluate("[...window.strips]")) == 1


def test_nothing_is_covered_and_the_panel_uses_the_window(open_tab: OpenTab) -> None:
    link = {"quality.mode": "always", "unscored": "true", "cutoff.strategy": "gap",
            "chunk": "attack-matrix-clerics-ac-7", "panel": "Chunk"}  # fmt: skip
    tab = open_tab(CLERIC | link, width=1920, height=1080).edit_rule()
    expect(tab.keyed("need-rerank", "button")).to_be_visible()
    # The panel fits into the window, and shows the rule with its effect.
    for width, height in ((1920, 1080), (1440, 900)):
        tab.page.set_viewport_size({"width": width, "height": height})
        tab.rest().keyed("panel").scroll_into_view_if_needed()
        assert 580 <= tab.rest().keyed("panel").bounding_box()["height"] <= height
        expect(tab.keyed("panel")).to_be_in_viewport(ratio=0.99)
        for part in (tab.rule, tab.keyed("rule-save", "button"), tab.verdicts.first):
            expect(part).to_be_in_viewport(ratio=1)
    # A tooltip leaves the rule in view.
    tip = tab.page.get_by_role("tooltip").locator(".stTooltipContent")
    tab.keyed("rule-save", "button").hover()
    expect(tip).to_be_in_viewport(ratio=1)
    assert apart(tip, tab.rule)
    tab.page.mouse.move(0, 0)
    expect(tip).to_have_count(0)
    # Neither what waits for a click nor a label of the curve covers anything.
    for width in (1440, 900):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.rest()
        for key in ("table", "panel"):
            tab.keyed(key).scroll_into_view_if_needed()
            for part in ("curve", "panel", "table-bar", "table"):
                assert apart(tab.keyed("needs"), tab.keyed(part)), (width, key, part)
        expect(tab.keyed("curve").locator(".annotation-text")).to_have_count(5)
        assert tab.keyed("curve").evaluate(COVERED) == [], width


def test_every_page_has_one_heading_and_the_settings_in_force(open_tab: OpenTab) -> None:
    tab = open_tab({"profile": "full"}).rest()
    head = tab.page.locator("h1")
    for page in ("Rules", "Evaluate", "Tune", "Compare", "Collections", "Inspect"):
        tab.visit(page)
        # That of the page before may be next to it until the run ends.
        heading = "Result" if page == "Inspect" else page
        expect(head.filter(has_text=heading)).to_have_count(1)
        tab.rest()
        expect(head).to_have_count(1)
        expect_no_overflow(tab)
        if page in ("Rules", "Collections"):
            continue
        expect(tab.keyed("viewing")).to_contain_text("Viewing as Guest")
    tab.click("present-button")
    expect(head.filter(has_text=CLERIC["q"])).to_have_count(1)
    expect_no_overflow(tab.rest())


def test_at_400_pixels_every_tab_is_reached_and_nothing_overlaps(open_tab: OpenTab) -> None:
    tab = open_tab(CLERIC, width=400, height=800).rest()
    expect(tab.page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    tabs = tab.keyed("panel-box").get_by_role("radio").all()
    assert len(tabs) == len(PANELS)
    for name, each in zip(PANELS, tabs, strict=True):
        tab.choose("panel-box", name)
        expect(each).to_have_attribute("aria-checked", "true")
        tab.rest()
        assert tab.page.evaluate("document.querySelector('.stMain').scrollWidth <= innerWidth")
    names = tab.page.locator(".rf-name, .rf-count, .rf-legend li")
    for parts in (names, tab.keyed("panel-box", "p")):
        assert parts.count() > 1
        assert parts.evaluate_all(MEETING) == []
    # The end of a title tells it from others.
    assert tab.keyed("table").bounding_box()["width"] >= 370
    fact = tab.strip.locator(".rf-fact b").last
    # As long as Tune's are.
    fact.evaluate("fact => fact.append(', F1 upper bound 0.847, 4.0 chunks, 571 tokens')")
    box, strip = fact.bounding_box(), tab.strip.bounding_box()
    assert box["x"] + box["width"] <= strip["x"] + strip["width"]

    # The sidebar gives way to the page that is chosen in it, and its button is always whole.
    opens, brand = tab.page.get_by_test_id("stExpandSidebarButton"), tab.page.locator(".rf-brand")
    expect(opens).to_be_in_viewport(ratio=1)
    opens.click()
    expect(brand).to_be_in_viewport(ratio=1)
    tab.page.get_by_test_id("stSidebarNavLink").filter(has_text="Rules").click()
    expect(tab.page.locator(".st-key-rules-work")).to_be_visible()
    expect(brand).not_to_be_in_viewport()
    for width in (900, 1440, 1920):
        tab.page.set_viewport_size({"width": width, "height": 900})
        if width > 900:
            tab.page.get_by_test_id("stSidebarHeader").hover()
            tab.page.get_by_test_id("stSidebarCollapseButton").locator("button").click()
        expect(opens).to_be_in_viewport(ratio=1)
        opens.click()
        expect(brand).to_be_in_viewport(ratio=1)
