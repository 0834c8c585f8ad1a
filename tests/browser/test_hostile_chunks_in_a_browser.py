"""A hostile collection and a hostile LLM in a real browser: nothing is fetched from elsewhere, and
the page works under its own security policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from faults import says, servers
from hostile import CHUNKS, HOSTILE, ODD, SAID, build
from playwright.sync_api import Page, expect

from ragfilter.ui.session.state import PANELS

pytestmark = [pytest.mark.browser, pytest.mark.model]

LINK = {"q": "What is in the vault?", "profile": "query-must", "judge.enabled": "true"}
WATCH = """window.violations = [];
addEventListener("securitypolicyviolation", event =>
    violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));"""
FOREIGN = """[...document.querySelectorAll("[src*='zqx'], [srcset*='zqx'], a[href*='zqx']")]
    .filter(each => !(each.getAttribute("href") ?? "").endsWith(each.textContent))
    .map(each => each.outerHTML.slice(0, 200))"""
MORE_THAN_TEXT = "img, a, code, strong, em, del, li, h1, h2, table, .katex, [role='img'], svg"


@pytest.fixture(scope="module")
def served(serve_app: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers() as start:
        yield serve_app(
            RAGFILTER_DATA_DIR=str(build(tmp_path_factory.mktemp("hostile"))),
            OPENAI_BASE_URL=start(says(SAID)).url,
            OPENAI_MODEL="![zqx](//zqx.example/m.png) :material/zqx:",
        )


def test_nothing_of_it_is_more_than_text_and_nobody_else_is_asked(open_tab: Callable[..., Any], served: str) -> None:
    asked: list[str] = []

    def watch(page: Page) -> None:
        page.add_init_script(WATCH)
        page.on("request", lambda request: asked.append(request.url))

    tab = open_tab(LINK, url=served, watch=watch, dark=True).rest()
    # Their clearances cannot be read.
    tab.click("viewing")
    tab.page.get_by_test_id("stPopoverBody").get_by_text("Clearance", exact=True).click()
    tab.page.keyboard.press("Escape")
    # Curve and table are drawn in the dark.
    expect(tab.kept).to_contain_text(f"of {len(CHUNKS)} retrieved")
    expect(tab.keyed("curve").locator("path.point").nth(10)).to_be_attached()
    assert len(tab.column("title")) > 5
    tab.click_point(0)
    # The answer, what it cites, and every panel.
    tab.rest().choose("panel-box", "Answer").rest().click("answer").rest()
    expect(tab.keyed("answer-filtered")).to_contain_text("zqx")
    for panel in PANELS:
        tab.choose("panel-box", panel).rest()
        assert tab.page.evaluate(FOREIGN) == [], panel
    with tab.page.expect_download() as download:
        tab.rest().click("table-more").click("download-csv")
    tab.page.keyboard.press("Escape")
    assert "zqx" in download.value.path().read_text()
    # Labels show it literally.
    tab.keyed("filter", "input").fill(ODD.id)
    tab.keyed("filter", "input").press("Enter")
    tab.rest()
    expect(tab.keyed("table-bar")).to_contain_text(f"1 of {len(CHUNKS)}")
    expect(tab.cell(0, "title")).to_contain_text("<img")
    tab.rest().click_row(0)
    tab.rest().choose("chunk-part", "References").rest()
    shown = tab.keyed("refs", "button")
    expect(shown).to_have_count(len(HOSTILE))
    told = "\n".join(shown.all_inner_texts()).replace("\u2060", "")
    for text in HOSTILE:
        assert re.sub(r"\s+", " ", text).strip() in told
    assert shown.locator(MORE_THAN_TEXT).count() == 0
    # No request to another server was made or attempted.
    assert tab.page.evaluate("violations") == []
    sent = [url for url in asked if not url.startswith(("data:", "blob:"))]
    assert [url for url in sent if urlsplit(url).netloc != urlsplit(served).netloc] == []
    assert len(sent) > 10
