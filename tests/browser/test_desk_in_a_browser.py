"""What is tuned stands beside the curve; Back, Ctrl+Z and a click take a step back."""

from __future__ import annotations

from collections.abc import Callable

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
    # The threshold, its way back and the curve are in the first screen.
    slider = tab.keyed("tune-cutoff-relative_offset").bounding_box()
    curve = tab.keyed("curve").bounding_box()
    assert slider["y"] + slider["height"] <= curve["y"]
    assert curve["y"] + curve["height"] <= 900
    tab.click("back-tune-cutoff-relative_offset")
    expect(tab.strip).to_contain_text("Best + 0.35")
    # What brings the chunk back, and Ctrl+Z twice.
    tab.rest().choose("chunk-part", "What if").click("whatif-0")
    tab.expect_kept(12).rest()
    tab.page.locator(".stMain").press("Control+z")
    tab.expect_kept(2).rest()
    tab.page.locator(".stMain").press("Control+z")
    expect(tab.strip).to_contain_text("Best + 0.30")
    # Back goes to the question before, Forward to the one after it.
    tab.rest().keyed("example-5", "button").first.click()
    tab.expect_kept(3).rest()
    tab.page.go_back()
    tab.expect_kept(2)
    expect(tab.keyed("ask-row", "input")).to_have_value(CLERIC)
    tab.rest().page.go_forward()
    tab.expect_kept(3)
