"""The tuned settings are next to the curve, Ctrl+Z and a click undo a step, and Back goes to the
question before."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
MATRIX = "attack-matrix-clerics-ac-7"


def test_the_engineers_desk(open_tab: Callable[..., object]) -> None:
    link = {"profile": "full", "q": CLERIC, "chunk": MATRIX, "panel": "Chunk",
            "cutoff.relative_offset": "0.3"}  # fmt: skip
    tab = open_tab(link, width=1440, height=900).rest().expect_kept(2)
    expect(tab.chunk).to_contain_text("Opponent Armor Class 7")
    # The threshold, its reset button and the curve are visible without scrolling.
    slider = tab.keyed("tune-cutoff-relative_offset").bounding_box()
    curve = tab.keyed("curve").bounding_box()
    assert slider["y"] + slider["height"] <= curve["y"]
    assert curve["y"] + curve["height"] <= 900
    tab.click("back-tune-cutoff-relative_offset")
    expect(tab.strip).to_contain_text("Best + 0.35")
    # The change that brings the chunk back, and Ctrl+Z twice.
    tab.rest().click("whatif-0")
    tab.expect_kept(12).rest()
    # In a field it takes back what was typed, and no setting.
    question = tab.keyed("ask-row", "input")
    question.press_sequentially("12")
    question.press("Control+z")
    expect(question).to_have_value(CLERIC)
    tab.rest().expect_kept(12)
    tab.page.locator(".stMain").press("Control+z")
    tab.expect_kept(2).rest()
    tab.page.locator(".stMain").press("Control+z")
    expect(tab.strip).to_contain_text("Best + 0.30")
    # Back goes to the previous question, whatever was set since, and Forward to the next one.
    tab.rest().keyed("example-5", "button").first.click()
    tab.expect_kept(3).rest().switch("diversity")
    expect(tab.page).to_have_url(re.compile("diversity.enabled=true"))
    tab.expect_kept(3).rest()
    tab.page.go_back()
    tab.expect_kept(2)
    expect(tab.keyed("ask-row", "input")).to_have_value(CLERIC)
    tab.rest().page.go_forward()
    tab.expect_kept(3)
    expect(tab.page).to_have_url(re.compile("diversity.enabled=true"))


def test_the_sidebar_shows_what_is_in_force_on_every_page(open_tab: Callable[..., Any]) -> None:
    tab = open_tab({"profile": "full"}).rest()
    layers = ("clearance", "query_must", "cutoff", "judge")
    for page in ("Evaluate", "Tune", "Compare", "Inspect"):
        tab.page.get_by_role("link", name=page, exact=True).click()
        expect(tab.page.get_by_role("link", name=page, exact=True)).to_have_attribute(
            "aria-current", "page"
        )
        tab.rest()
        for layer in layers:
            box = tab.page.locator(f".st-key-set-{layer}-enabled input[type='checkbox']").first
            expect(box).to_be_checked(checked=layer != "judge")
        expect(tab.keyed("user-level", "input").first).to_have_value("0")
