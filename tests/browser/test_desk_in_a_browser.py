"""The tuned settings are next to the curve, a step is undone and made again, and Back goes to the
question before."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
MATRIX = "attack-matrix-clerics-ac-7"


def test_the_engineers_desk(open_tab: Callable[..., object]) -> None:
    link = {"profile": "full", "q": CLERIC, "chunk": MATRIX, "panel": "Chunk",
            "cutoff.relative_offset": "0.3"}  # fmt: skip
    tab = open_tab(link, width=1440, height=900).rest().expect_kept(2)
    expect(tab.chunk).to_contain_text("Opponent Armor Class 7")
    # Strategy, k, the threshold, its reset button and the curve are visible without scrolling.
    curve = tab.keyed("curve").bounding_box()
    for name in ("strategy", "max_results", "relative_offset"):
        control = tab.keyed(f"box-tune-cutoff-{name}").bounding_box()
        assert control["y"] + control["height"] <= curve["y"]
    assert curve["y"] + curve["height"] <= 900
    expect(tab.page.get_by_role("heading", level=2)).to_have_text(
        ["Before and after", "Curve", "Chunks", "Chunk"]
    )
    tab.click("back-tune-cutoff-relative_offset")
    expect(tab.strip).to_contain_text("0.350 of the way")
    # The change that brings the chunk back, and Ctrl+Z.
    tab.rest().click("whatif-0")
    tab.expect_kept(12).rest()
    # In a field it takes back what was typed, and no setting.
    question = tab.keyed("ask-row", "input")
    question.press_sequentially("12")
    for _ in "12":  # A browser may take back one character at a time.
        question.press("Control+z")
    expect(question).to_have_value(CLERIC)
    tab.rest().expect_kept(12)
    tab.page.locator(".stMain").press("Control+z")
    tab.expect_kept(2)
    # The buttons at the top do the same, and Reset returns to the profile.
    tab.rest().click("undo")
    expect(tab.strip).to_contain_text("0.300 of the way")
    tab.rest().click("redo")
    expect(tab.strip).to_contain_text("0.350 of the way")
    for button, kept in (("redo", 12), ("reset", 2)):
        tab.rest().click(button)
        tab.expect_kept(kept)
    expect(tab.strip).to_contain_text("0.350 of the way")
    # Other words in the question bring the chunk back too, and others with it.
    ask = tab.rest().keyed("whatif-ask", "button")
    expect(ask).to_have_text(re.compile("Ask with: armor class 7$"))
    expect(tab.keyed("panel")).to_contain_text("5 chunks would also be kept: Turning Undead, ")
    ask.click()
    asked = f"{CLERIC} armor class 7"
    tab.expect_kept(8)
    expect(question).to_have_value(asked)
    # Back goes to the previous question, whatever was set since, and Forward to the next one.
    tab.rest().click("examples").page.get_by_role("menuitem", name="owlbears").click()
    tab.expect_kept(4).rest().switch("diversity")
    expect(tab.page).to_have_url(re.compile("diversity.enabled=true"))
    tab.expect_kept(4).rest()
    tab.page.go_back()
    tab.expect_kept(8)
    expect(question).to_have_value(asked)
    tab.rest().page.go_forward()
    tab.expect_kept(4)
    expect(tab.page).to_have_url(re.compile("diversity.enabled=true"))


def test_what_decides_is_named_where_one_looks(open_tab: Callable[..., Any]) -> None:
    link = {"q": "What is a lightsaber?", "profile": "full", "cutoff.max_results": "40",
            "quality.reranker": "none"}  # fmt: skip
    tab = open_tab(link).rest().expect_kept(5)
    # What nothing kept mentions is told at the headline and at the answer.
    expect(tab.keyed("headline")).to_contain_text("Nothing kept mentions “lightsaber”.")
    expect(tab.keyed("panel")).to_contain_text(
        "The context may not hold the answer: the chunks do not mention “lightsaber”"
    )
    limits = tab.page.get_by_label("Limits in force")
    expect(tab.keyed("curve-box")).to_contain_text("Max results = 40")
    expect(limits).to_contain_text(
        "Max results = 40 (cutoff) is not reached: 7 chunks came in, limited by Background "
        "share = 0.800 (quality)"
    )
    # A reranker that cannot be had: reason and remedy are whole, and no button invites again.
    missing = {
        "quality.reranker": "cross_encoder",
        "quality.reranker_model": "nobody/no-such-model",
    }
    tab.go(link | missing | {"quality.mode": "always"})
    told = tab.keyed("headline").get_by_role("alert")
    expect(told).to_contain_text("The reranker cross_encoder failed")
    for part in ("is not installed", "hf download", "Then ask the question again."):
        expect(told).to_contain_text(part)
    expect(told).to_be_in_viewport(ratio=1)
    assert told.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight")
    expect(tab.keyed("need-rerank")).to_have_count(0)


def test_a_setting_stays_whatever_the_browser_has_not_drawn(open_tab: Callable[..., Any]) -> None:
    link = {"q": CLERIC, "profile": "adaptive-gap", "cutoff.max_results": "2"}
    tab = open_tab(link, held=True).expect_kept(2).open("cutoff")
    sliders = [
        tab.keyed(f"{view}-cutoff-max_results").get_by_role("slider") for view in ("set", "tune")
    ]
    tab.click("line-idle")
    expect(tab.keyed("set-diversity-enabled")).to_be_visible()
    sliders[1].press("ArrowRight")
    tab.expect_kept(3).rest()
    expect(sliders[0]).to_have_value("3")

    # A busy browser draws neither what another widget of the setting shows now, nor an undo,
    # before the next click. It still reports what it shows.
    for act, kept in (
        (lambda: sliders[0].press("ArrowRight"), 4),
        (lambda: tab.click("undo"), 3),
    ):
        tab.page.evaluate("hold()")
        act()
        wait_until_all_is_held(tab.page)
        tab.switch("diversity")
        wait_until_all_is_held(tab.page)
        tab.page.evaluate("release()")
        expect(tab.page).to_have_url(re.compile(f"max_results={kept}.*diversity.enabled=true"))
        tab.expect_kept(kept).rest()
        for slider in sliders:
            expect(slider).to_have_value(str(kept))
        tab.click("undo")
        expect(tab.page).not_to_have_url(re.compile("diversity"))
        tab.rest()


def wait_until_all_is_held(page: Page) -> None:
    """Wait until the server has sent what it has to send."""
    held = -1
    while held != (held := page.evaluate("held.length")) or not held:
        page.wait_for_timeout(600)
