"""The threshold's line lies in the curve where it belongs, is dragged, and moved with keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"


def test_a_line_lies_in_the_curve_at_every_height_and_is_dragged(
    open_tab: Callable[..., Any],
) -> None:
    tab = open_tab({"profile": "full", "q": CLERIC}, width=1920, height=1080).rest().expect_kept(2)
    asked = tab.gathered()
    line = tab.page.get_by_role("slider", name="Relative offset, line of the curve")
    # The curve is as tall as the window allows, down to a limit.
    heights = []
    for height in (1080, 700, 900):
        tab.page.set_viewport_size({"width": 1920, "height": height})
        tab.rest()
        assert abs(bottom(tab.keyed("curve")) - bottom(tab.keyed("panel"))) <= 2
        # The handle lies on the line that plotly drew.
        expect(line).to_be_visible()
        drawn = tab.keyed("curve").locator(".shapelayer path").last
        assert abs(middle(line.locator("circle")) - middle(drawn)) <= 2
        heights.append(tab.keyed("curve").bounding_box()["height"])
    assert heights[0] > heights[1] == 388
    expect(line).to_have_attribute("aria-valuetext", "0.350 keeps 2")
    # During dragging, only the browser says what would stay.
    tab.drag_line(line, -60, -80)
    told = re.fullmatch(r"(\d\.\d+) keeps (\d+)", line.get_attribute("aria-valuetext"))
    value, kept = float(told[1]), int(told[2])
    assert value > 0.5
    assert kept > 2
    expect(tab.keyed("curve-box").locator(".rf-stays")).to_have_count(kept - 1)  # less the pin
    tab.expect_kept(2)
    # After release, the server's result is the same, and the store was not asked.
    tab.page.mouse.up()
    tab.expect_kept(kept)
    assert tab.gathered() == asked
    expect(tab.keyed("curve-box").locator(".rf-stays")).to_have_count(0)
    expect(tab.strip).to_contain_text(f"Best + {value:.2f}")
    # Keys: one step each, ten for a page; the focus stays.
    line.press("Home")
    tab.expect_kept(1)  # only the pin
    expect(line).to_be_focused()
    line.press("PageUp")
    line.press("ArrowUp")
    expect(line).to_have_attribute("aria-valuenow", "0.11")
    # Once the server knows about it, it can be undone.
    expect(tab.strip).to_contain_text("Best + 0.11")
    tab.rest().page.locator(".stMain").press("Control+z")
    expect(line).not_to_have_attribute("aria-valuenow", "0.11")
    # Along the curve, keys open one chunk after another.
    walk = tab.rest().page.get_by_role("slider", name="Chunks along the curve")
    walk.press("Home")
    expect(tab.chunk).to_contain_text("Opponent Armor Class 6")
    walk.press("ArrowRight")
    second = walk.get_attribute("aria-valuetext")
    assert second != "none open"
    expect(tab.chunk).to_contain_text(second.rpartition("… ")[2])
    expect(walk).to_be_focused()


def middle(element: Any) -> float:
    box = element.bounding_box()
    return float(box["y"] + box["height"] / 2)


def bottom(element: Any) -> float:
    box = element.bounding_box()
    return float(box["y"] + box["height"])
