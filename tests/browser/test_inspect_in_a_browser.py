"""The Inspect page in a real browser: open chunks, share, print."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect
from pypdf import PageObject, PdfReader

from ragfilter.ui.look import theme

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap", "collection": "demo"}
WATCH = """() => {
  window.strips = new Set()
  window.waited = false
  const look = () => {
    if (document.querySelector(".st-key-waiting")) window.waited = true
    const strip = document.querySelector(".rf-strip")?.getBoundingClientRect()
    if (strip) window.strips.add(`${strip.x} ${strip.y} ${strip.width}`)
  }
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true})
  look()
}"""
"""Records the positions of the strip in `strips`, and whether the page searched in `waited`."""
OpenTab = Callable[..., Any]


def test_a_point_a_row_and_a_key_open_a_chunk(open_tab: OpenTab) -> None:
    tab = open_tab(OWLBEARS).expect_kept(4).rest()
    facts, head = tab.chunk.locator(".rf-facts"), tab.chunk.locator("h3")
    told = tab.click_point(3)
    expect(head).to_have_text(told[0])
    expect(facts).to_contain_text(told[1])
    # A click anywhere in a row. In a narrow window too, the essential columns are visible without scrolling sideways.
    tab.rest().page.set_viewport_size({"width": 900, "height": 900})
    for row, column in ((0, "outcome"), (2, ""), (1, "reason")):
        title = tab.rest().click_row(row, column)
        expect(head).to_have_text(title)
        expect(facts).to_contain_text(f"rank {row + 1}")
        # The row of the open chunk is selected, however it was opened.
        expect(tab.selected_row).to_have_attribute("aria-rowindex", str(row + 2))
    # Arrow keys go on from the cell that was clicked. The table takes the focus once it shows its selection.
    for rank in (3, 4):
        expect(tab.keyed("table").locator(":focus")).to_be_attached()
        tab.rest().page.keyboard.press("ArrowDown")
        expect(facts).to_contain_text(f"rank {rank}")
    # The first click after a switch, whatever the table was before.
    tab.rest().switch("query_must")
    tab.expect_layers("retrieved", "clearance", "query_must", "cutoff", "context")
    title = tab.click_row(0, "reason")
    expect(head).to_have_text(title)
    expect(facts).to_contain_text("rank 1")


def test_a_change_is_read_aloud_moves_nothing_and_is_in_the_link(open_tab: OpenTab) -> None:
    tab = open_tab(OWLBEARS, busy=True).expect_kept(4).rest()
    live = tab.keyed("drag", "").locator("[aria-live='polite']")
    expect(live).to_have_text("4 kept of 200")
    # Screen readers announce only changes within an element that persists.
    live.evaluate("element => { element.dataset.stays = 'yes' }")
    tab.open("cutoff").keyed("set-cutoff-max_results").get_by_role("slider").focus()
    tab.page.keyboard.press("ArrowLeft")
    tab.page.keyboard.press("ArrowLeft")
    tab.expect_kept(3)
    expect(live).to_have_text("3 kept of 200")
    expect(live).to_have_attribute("data-stays", "yes")
    # The address contains the settings, and nothing else.
    tab.rest().expect_layers("retrieved", "clearance", "cutoff", "context").rest()
    expect(tab.page).to_have_url(re.compile(r"cutoff\.max_results=3"))
    changed = OWLBEARS | {"cutoff.max_results": "3"}
    address = dict(parse_qsl(urlsplit(tab.page.url).query))
    assert address == changed | {"open": "tuning,evidence"}
    # One click copies a link with more than the address contains, even without HTTPS.
    tab.click("fold").rest()
    said, box = tab.keyed("copy-link").get_by_role("status"), tab.keyed("question", "input")
    tab.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    tab.click("copy-link")
    expect(said).to_have_text("Link copied")
    box.fill("")
    box.press("Control+v")
    copied = dict(parse_qsl(urlsplit(box.input_value()).query))
    assert (changed | {"places": "All"}).items() <= copied.items()
    # The headline stays where it is while the page searches.
    tab.page.evaluate(WATCH)
    # A question that no other test asks, since the server caches searches.
    tab.ask("Who guards the strip?")
    assert tab.page.evaluate("window.waited")
    assert len(tab.page.evaluate("[...window.strips]")) == 1


def printed_at(sheet: PageObject, word: str) -> float:
    """Where the last text that is `word` begins, as a share of the sheet's width."""
    found: list[float] = []

    def look(text: str, cm: list[float], tm: list[float], *_: object) -> None:
        if text.strip() == word:
            found.append(tm[4] * cm[0] + tm[5] * cm[2] + cm[4])

    sheet.extract_text(visitor_text=look)
    return found[-1] / float(sheet.mediabox.width)


def printed(colour: str) -> str:
    """How Chromium writes this colour in a PDF: ".1059 .1451 .1529"."""
    shares = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return " ".join(f"{share:.4f}".strip("0") for share in shares)


def test_a_result_is_printed_on_one_page(open_tab: OpenTab) -> None:
    tab = open_tab({"q": CLERIC, "profile": "full"}, width=900, dark=True)
    expect(tab.keyed("answer-unfiltered")).to_be_visible()
    expect(tab.keyed("curve").locator("path.point").first).to_be_attached()
    # The sheet has the kept chunks, but no elements that only make sense on screen.
    (sheet,) = PdfReader(BytesIO(tab.rest().page.pdf(format="A4"))).pages
    text = " ".join(sheet.extract_text().split())
    for said in (CLERIC, "2 pass the filter", "Armor Class 6"):
        assert said in text
    for hidden in ("Layers, in order", "Strategy", "Prompt", "show all"):
        assert hidden not in text
    # The curve ends where the paper does, and nothing is in the colours of the dark theme.
    assert 0.8 < printed_at(sheet, "limit") < 0.95
    drawn = sheet.get_contents().get_data().decode("latin-1")
    assert f"{printed(theme.TEXT[0])} rg" in drawn
    for colour in (theme.TEXT[1], theme.MUTED[1], *(m.dark for m in theme.LAYERS.values())):
        assert printed(colour) not in drawn
