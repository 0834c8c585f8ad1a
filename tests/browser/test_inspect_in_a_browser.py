"""The Inspect page in a real browser: open chunks, share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from browser.runs import Runs

pytestmark = [pytest.mark.browser, pytest.mark.model]

OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap", "collection": "demo"}
CHANGED = OWLBEARS | {"cutoff.max_results": "3"}
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


def test_a_result_is_looked_into_and_shared(open_tab: OpenTab) -> None:
    runs = Runs()
    tab = open_tab(OWLBEARS, watch=runs.watch).expect_kept(4).rest()
    a_change_is_read_aloud_and_in_the_address(tab)
    a_point_a_row_and_a_key_open_a_chunk(tab)
    another_prompt_runs_its_panel_alone(tab, runs)
    one_click_copies_a_link_and_the_next_question_moves_nothing(tab)


def a_change_is_read_aloud_and_in_the_address(tab: Any) -> None:
    live = tab.keyed("drag", "").locator("[aria-live='polite']")
    expect(live).to_have_text("4 kept of 200")
    # Screen readers announce only changes within an element that persists.
    live.evaluate("element => { element.dataset.stays = 'yes' }")
    tab.open("cutoff").keyed("set-cutoff-max_results").get_by_role("slider").focus()
    tab.rest().page.evaluate("slow = true")
    tab.page.keyboard.press("ArrowLeft")
    tab.page.keyboard.press("ArrowLeft")
    tab.expect_kept(3)
    expect(live).to_have_text("3 kept of 200")
    expect(live).to_have_attribute("data-stays", "yes")
    tab.rest().expect_layers("retrieved", "clearance", "cutoff", "context").rest()
    tab.page.evaluate("slow = false")
    # The address contains the settings, and nothing else.
    expect(tab.page).to_have_url(re.compile(r"cutoff\.max_results=3"))
    address = dict(parse_qsl(urlsplit(tab.page.url).query))
    assert address == CHANGED | {"open": "evidence"}


def a_point_a_row_and_a_key_open_a_chunk(tab: Any) -> None:
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
    tab.expect_layers("retrieved", "clearance", "rules", "cutoff", "context")
    title = tab.click_row(0, "reason")
    expect(head).to_have_text(title)
    expect(facts).to_contain_text("rank 1")
    tab.rest().click("undo")
    tab.expect_layers("retrieved", "clearance", "cutoff", "context").rest()


def another_prompt_runs_its_panel_alone(tab: Any, runs: Runs) -> None:
    tab.choose("panel-box", "Prompt")
    prompt = tab.keyed("panel")
    expect(prompt).to_contain_text("3 chunks, about 442 tokens")
    tab.rest()
    with runs.only_a_fragment():
        tab.choose("prompt-side", "plain search")
        expect(prompt).to_contain_text("5 chunks, about 715 tokens")
        tab.rest()


def one_click_copies_a_link_and_the_next_question_moves_nothing(tab: Any) -> None:
    # The link has more than the address contains, and is copied even without HTTPS.
    tab.click("fold").rest()
    said, box = tab.keyed("copy-link").get_by_role("status"), tab.keyed("question", "input")
    tab.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    tab.click("copy-link")
    expect(said).to_have_text("Link copied")
    box.fill("")
    box.press("Control+v")
    copied = dict(parse_qsl(urlsplit(box.input_value()).query))
    assert (CHANGED | {"places": "All"}).items() <= copied.items()
    # The headline stays where it is while the page searches.
    tab.page.evaluate(WATCH)
    tab.page.evaluate("slow = true")
    # A question that no other test asks, since the server caches searches.
    tab.ask("Who guards the strip?")
    assert tab.page.evaluate("window.waited")
    assert len(tab.page.evaluate("[...window.strips]")) == 1
