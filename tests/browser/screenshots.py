"""Screenshots of every page and mode, for visual review: at four widths, light and dark, in
`build/screenshots`. Not collected as a test; name the file to run it, and a width to see only that
one:

`.venv/bin/python -m pytest tests/browser/screenshots.py -k 1440`
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.few import app as app
from ragfilter.ingest import demo
from ragfilter.ui.rules.page import PARTS
from ragfilter.ui.session.state import PANELS

pytestmark = [pytest.mark.browser, pytest.mark.model]

FOLDER = Path(__file__).resolve().parents[2] / "build" / "screenshots"
CLERIC = {"q": demo.queries()["cleric-ac6"], "profile": "full", "collection": "demo"}
CHUNK = CLERIC | {"chunk": "attack-matrix-clerics-ac-7", "panel": "Chunk"}
HEIGHTS = {1920: 1080, 1440: 900, 900: 900, 400: 800}
Shoot = Callable[[Any, str], None]


@pytest.fixture(params=[(w, d) for w in HEIGHTS for d in (False, True)],
                ids=lambda each: f"{each[0]}-{'dark' if each[1] else 'light'}")  # fmt: skip
def begin(request: pytest.FixtureRequest, open_tab: Callable[..., Any]) -> Callable[..., Any]:
    """Opens the page with the window and theme of this run."""
    width, dark = request.param

    def begin(params: dict[str, str] | None = None) -> Any:
        return open_tab(params, width=width, height=HEIGHTS[width], dark=dark).rest()

    return begin


@pytest.fixture
def shoot(request: pytest.FixtureRequest) -> Shoot:
    """Saves what the window shows, and the whole page if it is longer."""
    folder = FOLDER / request.node.callspec.id

    def shoot(tab: Any, name: str) -> None:
        page = tab.rest().page
        page.locator(".stMain").evaluate("main => main.scrollTo(0, 0)")
        # Colours and charts change over a moment.
        page.wait_for_timeout(300)
        page.screenshot(path=folder / f"{name}.png")
        whole = page.locator(".stMain").evaluate("main => main.scrollHeight")
        window = page.viewport_size
        if whole > window["height"]:
            page.set_viewport_size({"width": window["width"], "height": min(whole, 4000)})
            page.wait_for_timeout(300)
            page.screenshot(path=folder / f"{name}-whole.png")
            page.set_viewport_size(window)

    return shoot


def visit(tab: Any, page: str) -> Any:
    """Go to a page by its link at the top of the window or, if that is narrow, in the sidebar."""
    before = tab.page.viewport_size
    tab.page.set_viewport_size({"width": 1440, "height": before["height"]})
    tab.visit(page)
    tab.page.set_viewport_size(before)
    return tab.rest()


def test_inspect(begin: Callable[..., Any], shoot: Shoot) -> None:
    tab = begin({"collection": "demo"})
    shoot(tab, "inspect-empty")
    tab.click("help-button")
    expect(tab.page.get_by_role("dialog")).to_be_visible()
    shoot(tab, "help")
    tab.keyed("tour-begin", "button").click()
    expect(tab.keyed("tour")).to_be_visible()
    shoot(tab, "tour")
    tab = begin(CHUNK)
    expect(tab.chunk).to_be_visible()
    shoot(tab, "inspect-chunk-text")
    for part in tab.keyed("chunk-part").get_by_role("radio").all_inner_texts()[1:]:
        tab.choose("chunk-part", part)
        shoot(tab, f"inspect-chunk-{part.lower().replace(' ', '-')}")
    for panel in PANELS:
        if panel != "Chunk":
            tab.choose("panel-box", panel)
            shoot(tab, f"inspect-{panel.lower()}")


def test_present(begin: Callable[..., Any], shoot: Shoot) -> None:
    tab = begin(CLERIC)
    expect(tab.keyed("answer-unfiltered")).to_be_visible()
    tab.rest().click("present-button")
    expect(tab.page.locator(".rf-used")).to_have_count(2)
    shoot(tab, "present-before")
    tab.page.keyboard.press("ArrowRight")
    expect(tab.page.locator(".rf-scene")).to_contain_text("pass the filter")
    shoot(tab, "present-after")


def test_rules(begin: Callable[..., Any], shoot: Shoot) -> None:
    tab = visit(begin(CLERIC), "Rules")
    for part in PARTS:
        tab.choose("rules-part", part)
        shoot(tab, f"rules-{part.lower()}")
    tab.choose("rules-part", next(iter(PARTS))).rest().click("rules-next")
    expect(tab.chunk).to_be_visible()
    shoot(tab, "rules-chunk")


def test_evaluate_and_tune(begin: Callable[..., Any], shoot: Shoot) -> None:
    tab = visit(begin(CLERIC | {"profile": "adaptive-gap"}), "Evaluate")
    tab.pick("query-set-box", "^few · 3")
    shoot(tab, "evaluate-empty")
    tab.rest().click("evaluate")
    expect(tab.page.locator(".rf-strip[aria-label=Evaluation]")).to_contain_text("Oracle")
    for view in ("Comparison", "Layers", "Questions", "Plots"):
        tab.rest().choose("view", view)
        shoot(tab, f"evaluate-{view.lower()}")
    tab.rest().keyed("sets-open", "label").click()
    for part in ("Questions", "Labels"):
        tab.rest().choose("sets-part", part)
        shoot(tab, f"evaluate-sets-{part.lower()}")
    visit(tab, "Tune")
    shoot(tab, "tune-empty")
    tab.rest().click("map")
    expect(tab.keyed("map-chart").locator("path.point").nth(2000)).to_be_attached()
    tab.rest().click("suggest")
    expect(tab.keyed("suggestion")).to_be_visible()
    shoot(tab, "tune")


def test_compare_and_collections(begin: Callable[..., Any], shoot: Shoot) -> None:
    tab = visit(begin(CLERIC), "Compare")
    expect(tab.page.locator(".rf-stack")).to_have_count(2)
    shoot(tab, "compare-one")
    tab.choose("compare-step", "Answers")
    expect(tab.keyed("compare-answers")).to_be_visible()
    shoot(tab, "compare-answers")
    tab.pick("compare-over", "^few · 3")
    # The widths share a workspace, and only the first one has to measure.
    strip = tab.page.locator(".rf-strip[aria-label=Comparison]")
    expect(tab.rest().keyed("compare-measure", "button").or_(strip)).to_be_visible()
    if not strip.is_visible():
        tab.click("compare-measure")
    expect(tab.page.locator(".rf-strip[aria-label=Comparison]")).to_contain_text("paired")
    shoot(tab, "compare-set")
    visit(tab, "Collections")
    shoot(tab, "collections")
    notes = {"name": "notes.csv", "mimeType": "text/csv",
             "buffer": b"Nr,When,Body\n1,Monday,Trolls fear fire.\n2,,\n"}  # fmt: skip
    tab.page.locator("[data-testid='stFileUploader'] input[type='file']").set_input_files([notes])
    expect(tab.keyed("first-chunks")).to_be_visible()
    shoot(tab, "collections-draft")
