"""Two settings side by side in a real browser, voted on, over a query set, and downloaded as a
report that opens from disk without a network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from browser.few import add_few
from ragfilter.ingest import demo

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = demo.queries()["cleric-ac6"]
OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str], copy_demo: Callable[[], Path]) -> str:
    """A server on a demo whose query set few has three labelled questions."""
    workspace = copy_demo()
    add_few(workspace)
    return serve_app(RAGFILTER_DATA_DIR=str(workspace))


def test_two_settings_are_compared_and_taken_along(
    open_tab: OpenTab, browser: Browser, tmp_path: Path
) -> None:
    tab = open_tab({"profile": "full", "q": CLERIC, "collection": "demo"})
    tab.rest().expect_kept(2)
    inspect_hands_out_a_report_that_fits_and_prints(tab, browser, tmp_path / "report.html")
    page = tab.page
    page.get_by_test_id("stTopNavLink").get_by_text("Compare", exact=True).click()
    strip = page.locator(".rf-strip[aria-label=Comparison]")
    expect(strip).to_contain_text(re.compile(r"Only A\s*13\s*Both\s*2\s*Only B\s*0"))
    expect(tab.keyed("ask-row", "input")).to_have_value(CLERIC)
    chart = tab.rest().keyed("compare-lists")
    expect(chart.locator("path.point")).to_have_count(15 + 2 + 13)
    tab.click("sides-swap")
    expect(strip).to_contain_text(re.compile(r"Only A\s*0\s*Both\s*2\s*Only B\s*13"))
    expect(page).to_have_url(re.compile(r"[?&]a=settings&b=unfiltered"))
    tab.rest()
    tab.keyed("prefer-compare-first", "button").click()
    expect(tab.keyed("compare-answers")).to_contain_text("This pair: 1 vote, 1 for A.")
    tab.rest()

    # The link opens the same comparison for others.
    other = page.context.new_page()
    other.goto(page.url)
    shared = other.locator(".rf-strip[aria-label=Comparison]")
    expect(shared).to_contain_text(re.compile(r"Only A\s*0\s*Both\s*2\s*Only B\s*13"))
    other.close()
    with page.expect_download() as offered:
        tab.keyed("compare-report", "button").click()
    told = read(browser, offered.value, tmp_path / "two.html")
    expect(told.locator("h1")).to_have_text(CLERIC)
    expect(told.locator("h3", has_text="Only B keeps: 13")).to_be_visible()
    told.context.close()

    tab.choose("compare-mode-box", "Query set")
    tab.pick("compare-set-box", "^few · 3").rest().click("compare-measure")
    expect(strip).to_contain_text("paired permutation test")
    tab.rest()
    with page.expect_download() as offered:
        tab.keyed("compare-set-report", "button").click()
    told = read(browser, offered.value, tmp_path / "few.html")
    expect(told.locator("h1")).to_have_text("profile unfiltered (B) against current settings (A)")
    told.context.close()
    # A click on the most changed question opens it with both settings.
    expect(tab.keyed("compare-gains-chart").locator("path").first).to_be_attached()
    tab.open_question()
    expect(strip).to_contain_text("A keeps")
    assert "set=" not in page.url


def inspect_hands_out_a_report_that_fits_and_prints(tab: Any, browser: Browser, to: Path) -> None:
    with tab.page.expect_download() as offered:
        tab.keyed("download-report", "button").click()
    for width, dark in ((400, False), (1440, True)):
        told = read(browser, offered.value, to, width=width, dark=dark)
        expect(told.locator("h1")).to_have_text(CLERIC)
        expect(told.locator(".chunk")).to_have_count(2)
        assert told.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ground = "getComputedStyle(document.body).backgroundColor"
        assert (told.evaluate(ground) == "rgb(255, 255, 255)") is not dark
        # On paper it is always light, and nothing is cut off at the right.
        told.emulate_media(media="print")
        assert told.evaluate(ground) == "rgb(255, 255, 255)"
        assert told.pdf(format="A4").startswith(b"%PDF")
        told.context.close()


def read(browser: Browser, offered: Any, to: Path, *, width: int = 1100, dark: bool = False) -> Any:
    """The downloaded report, opened from disk with the network off. It requests nothing."""
    offered.save_as(to)
    context = browser.new_context(
        offline=True,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
    )
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(to.as_uri())
    assert asked == [to.as_uri()]
    return page
