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
    page = tab.page
    page.get_by_test_id("stTopNavLink").get_by_text("Compare", exact=True).click()
    said = page.locator(".rf-headline")
    expect(said).to_contain_text("Both keep 2 passages, and only A keeps 13 more.")
    expect(tab.keyed("ask-row", "input")).to_have_value(CLERIC)
    passage = tab.rest().page.locator(".rf-stack li").first
    passage.click()
    expect(tab.keyed("compare-chunk")).to_contain_text("attack-matrix-clerics-ac-6")
    tab.rest().click("sides-swap")
    expect(said).to_contain_text("only B keeps 13 more")
    expect(page).to_have_url(re.compile(r"[?&]a=settings&b=unfiltered"))
    tab.rest().choose("compare-step", "Answers")
    tab.keyed("prefer-compare-first", "button").click()
    expect(tab.keyed("compare-answers")).to_contain_text("This pair: 1 vote, 1 for A.")
    tab.rest()

    # The link opens the same comparison for others.
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(".rf-headline")).to_contain_text("only B keeps 13 more")
    other.close()
    with page.expect_download() as offered:
        tab.keyed("compare-report", "button").click()
    for width, dark in ((400, False), (1440, True)):
        told = read(browser, offered.value, tmp_path / "two.html", width=width, dark=dark)
        expect(told.locator("h1")).to_have_text(CLERIC)
        expect(told.locator("h3", has_text="Only B keeps: 13")).to_be_visible()
        assert told.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ground = "getComputedStyle(document.body).backgroundColor"
        assert (told.evaluate(ground) == "rgb(255, 255, 255)") is not dark
        # On paper it is always light, and nothing is cut off at the right.
        told.emulate_media(media="print")
        assert told.evaluate(ground) == "rgb(255, 255, 255)"
        assert told.pdf(format="A4").startswith(b"%PDF")
        told.context.close()

    tab.pick("compare-over", "^few · 3").rest().click("compare-measure")
    expect(page.locator(".rf-strip[aria-label=Comparison]")).to_contain_text(
        "paired permutation test"
    )
    tab.rest()
    with page.expect_download() as offered:
        tab.keyed("compare-set-report", "button").click()
    told = read(browser, offered.value, tmp_path / "few.html")
    expect(told.locator("h1")).to_have_text("profile unfiltered (B) against current settings (A)")
    told.context.close()
    # A click on the most changed question opens it with both settings.
    expect(tab.keyed("compare-gains-chart").locator("path").first).to_be_attached()
    tab.open_question()
    expect(said).to_contain_text("keep")
    assert "set=" not in page.url


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
