"""Every page and mode in a real browser, light and dark: axe-core finds only minor faults, screen
readers read no Markdown signs, no window cuts anything off, and the first window shows little."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, expect

from browser.budget import first_window
from ragfilter.ingest import bundled
from ragfilter.ui.session.state import PANELS

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = {"q": bundled.queries("demo")["cleric-ac6"], "profile": "full", "collection": "demo"}
CHUNK = CLERIC | {"chunk": "attack-matrix-clerics-ac-6", "panel": "Chunk", "open": "tuning,evidence"}
PAGES = ("Rules", "Tune", "Evaluate", "Compare", "Collections")
WIDTHS = (400, 640, 960)
"""Window widths in pixels, besides 1440; 960 is 1440 at 150%. A wider window cuts nothing off that fits into these."""
OF_EARLIER = ("Undo", "✓ Label")
"""Controls that a new workspace and session lack: a choice can be undone, and somebody has labelled."""
GRAVE = ("critical", "serious", "moderate")
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
GROUND = {False: "rgb(251, 251, 249)", True: "rgb(16, 22, 23)"}
"""The background of the page, light and dark."""
MARKS = re.compile(r":[a-z-]+\[|\*\*|`|\\")
LABELS = "[...document.querySelectorAll('[aria-label]')].map(part => part.ariaLabel)"
NAME = re.compile(r'^\s*- .?[a-z]+ ("(?:[^"\\]|\\.)*")', re.MULTILINE)
"""A name in the accessibility snapshot."""
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
"""The pairs of elements that overlap."""
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
OpenTab = Callable[..., Any]


def pages(tab: Any) -> Iterator[str]:
    """Open every page and mode in `tab` in turn, and yield the name of each once it is drawn."""
    expect(tab.chunk).to_be_visible()
    tab.edit_rule()
    yield "Rule"
    tab.choose("panel-box", "Answer")
    expect(tab.keyed("answer-unfiltered")).to_be_visible()
    tab.rest()
    yield "Inspect"
    for page in PAGES:
        tab.visit(page)
        expect(tab.page.locator("h1").filter(has_text=page)).to_have_count(1)
        if page == "Tune":
            # Evaluate measures the chosen set by itself.
            tab.pick("query-set-box", "^few · ")
        tab.rest()
        yield page
        if page == "Evaluate":
            tab.click("open-labelling")
            dialog = tab.page.locator("dialog.rf-label")
            expect(dialog.get_by_role("heading", level=2)).to_be_visible()
            tab.rest()
            yield "Label"
            tab.page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
    tab.visit("Inspect").click("present-button")
    expect(tab.page.locator(".rf-headline")).to_have_count(1)
    tab.rest()
    yield "Present"


def test_every_page_can_be_read_in_every_window_light_and_dark(open_tab: OpenTab) -> None:
    tab = open_tab(CHUNK | {"quality.mode": "always", "unscored": "true", "cutoff.strategy": "gap"})
    found: list[tuple[str, str, str]] = []
    dark = False
    for page in pages(tab):
        if page == "Rule":
            nothing_is_covered_and_the_panel_uses_the_window(tab)
        if page in PAGES:
            shown = first_window(tab.page)
            assert len(shown.controls) <= 45, shown.controls
            assert len(shown.words) <= 200, " ".join(shown.words)
        if page != "Label":
            expect(tab.page.locator("h1")).to_have_count(1)
        # Streamlit names some parts by their label as it is given.
        names = [*map(json.loads, NAME.findall(tab.page.locator("body").aria_snapshot())), *tab.page.evaluate(LABELS)]
        found += [(page, "name", name) for name in names if MARKS.search(name)]
        found += [(page, *fault) for fault in grave(tab)]
        # Only colours differ in the other theme, in which the next page is drawn.
        dark = not dark
        tab.page.emulate_media(color_scheme="dark" if dark else "light")
        expect(tab.page.locator(".stApp")).to_have_css("background-color", GROUND[dark])
        found += [(page, *fault) for fault in grave(tab.rest(), COLOURS)]
        for width in WIDTHS if page != "Label" else ():
            tab.page.set_viewport_size({"width": width, "height": 900})
            # A table takes its new width a moment after the window has.
            tab.page.wait_for_function(f"() => !({OVERFLOW})()")
        tab.page.set_viewport_size({"width": 1440, "height": 900})
        tab.rest()
    assert not found


def grave(tab: Any, rules: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """The page's faults that are more than minor: the rule and the part that breaks it."""
    if not tab.page.evaluate("'axe' in window"):
        tab.page.evaluate(Axe().axe_script)
    options = {"resultTypes": ["violations"]} | (rules or {})
    return [
        (fault["id"], node["html"])
        for fault in tab.page.evaluate("options => axe.run(options)", options)["violations"]
        if fault["impact"] in GRAVE
        for node in fault["nodes"]
    ]


def apart(one: Locator, other: Locator) -> bool:
    """Whether neither covers a part of the other."""
    a, b = one.bounding_box(), other.bounding_box()
    assert a is not None
    assert b is not None
    beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
    return beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]


def nothing_is_covered_and_the_panel_uses_the_window(tab: Any) -> None:
    expect(tab.keyed("need-rerank", "button")).to_be_visible()
    # The panel fits into the window, and shows the rule with its effect.
    tab.keyed("panel").scroll_into_view_if_needed()
    assert 580 <= tab.rest().keyed("panel").bounding_box()["height"] <= 900
    expect(tab.keyed("panel")).to_be_in_viewport(ratio=0.99)
    for part in (tab.rule, tab.keyed("rule-save", "button"), tab.verdicts.first):
        expect(part).to_be_in_viewport(ratio=1)
    assert apart(tab.rule, tab.keyed("rule-foot"))
    # Neither what waits for a click nor a label of the curve covers anything.
    for width in (1440, 900):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.rest()
        for key in ("table", "panel"):
            tab.keyed(key).scroll_into_view_if_needed()
            for part in ("curve", "panel", "table-bar", "table"):
                assert apart(tab.keyed("needs"), tab.keyed(part)), (width, key, part)
        expect(tab.keyed("curve").locator(".annotation-text")).to_have_count(6)
        assert tab.keyed("curve").evaluate(COVERED) == [], width
    tab.page.set_viewport_size({"width": 1440, "height": 900})
    tab.rest().click("reset").rest()


def test_a_result_shows_little_and_fits_into_400_pixels(open_tab: OpenTab) -> None:
    tab = open_tab(CLERIC | {"open": ""})
    for profile in ("query-must", "adaptive-gap", "full"):
        tab.pick("profile-box", f"^{profile}$").keyed("answer-unfiltered").wait_for()
        shown = first_window(tab.rest().page)
        assert len([each for each in shown.controls if each not in OF_EARLIER]) <= 40, shown.controls
        assert len(shown.words) <= 155, " ".join(shown.words)
        assert len(shown.numbers) <= 30, shown.numbers
    tab.click("open-evidence").rest().page.set_viewport_size({"width": 400, "height": 800})
    at_400_pixels_every_tab_is_reached_and_nothing_overlaps(tab.rest())


def at_400_pixels_every_tab_is_reached_and_nothing_overlaps(tab: Any) -> None:
    expect(tab.page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    tabs = tab.keyed("panel-box").get_by_role("radio").all()
    for name, each in zip(PANELS, tabs, strict=True):
        tab.choose("panel-box", name)
        expect(each).to_have_attribute("aria-checked", "true")
        tab.rest()
        assert tab.page.evaluate("document.querySelector('.stMain').scrollWidth <= innerWidth")
    names = tab.page.locator(".rf-name, .rf-count, .rf-legend li")
    for parts in (names, tab.keyed("panel-box", "p")):
        assert parts.count() > 1
        assert parts.evaluate_all(MEETING) == []
    # The sidebar gives way to the page that is chosen in it, and its button is always whole.
    opens, brand = tab.page.get_by_test_id("stExpandSidebarButton"), tab.page.locator(".rf-brand")
    expect(opens).to_be_in_viewport(ratio=1)
    opens.click()
    expect(brand).to_be_in_viewport(ratio=1)
    tab.page.get_by_test_id("stSidebarNavLink").filter(has_text="Rules").click()
    expect(tab.page.locator(".st-key-rules-work")).to_be_visible()
    expect(brand).not_to_be_in_viewport()
