"""The threshold's line lies in the curve where it belongs, is dragged, and moved with keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"


def test_the_line_is_dragged_and_stepped(open_tab: Callable[..., Any]) -> None:
    tab = open_tab({"profile": "full", "q": CLERIC}, width=1440, height=900).rest()
    line = tab.page.get_by_role("slider", name="Relative offset, line of the curve")
    shapes, box = tab.keyed("curve").locator(".shapelayer path"), tab.keyed("curve-box")
    told = box.locator("[aria-live]")
    expect(told).to_have_text("2 kept of 200")
    # The handle lies on the line that plotly drew; what stays is labelled with its telling words.
    assert abs(middle(line.locator("circle")) - middle(shapes.last)) <= 2
    expect(line).to_have_attribute("aria-valuetext", "limit 0.541 keeps 2")
    expect(tab.keyed("curve")).to_contain_text("limit 0.541")
    expect(box.locator("[data-passage] text").first).to_contain_text("Armor Class 6")
    # A title leaves plotly's words to be read.
    titles = [each.bounding_box() for each in box.locator("[data-passage] text").all()]
    notes = [each.bounding_box() for each in box.locator(".annotation-text").all()]
    assert titles
    assert notes
    assert not [each for each in titles if any(map(partial(meet, each), notes))]
    # During dragging, only the browser says what would stay.
    tab.drag_line(line, -60, -95)
    said = re.fullmatch(r"limit (\d\.\d+) keeps (\d+)", line.get_attribute("aria-valuetext"))
    kept = int(said[2])
    assert kept > 2
    expect(box.locator(".rf-stays")).to_have_count(kept - 1)  # less the pin
    expect(told).to_have_text("2 kept of 200")
    # After release, the server's result is the same, and the axis stays.
    at = middle(line.locator("circle"))
    tab.page.mouse.up()
    expect(told).to_have_text(f"{kept} kept of 200")
    tab.rest()
    expect(box.locator(".rf-stays")).to_have_count(0)
    assert abs(middle(line.locator("circle")) - at) <= 3
    expect(tab.keyed("curve")).to_contain_text(f"limit {said[1]}")
    # The buttons on the line keep one less and one more, and say by which change.
    less = tab.page.get_by_role("button", name="Keep one less: Relative offset")
    expect(less).to_have_attribute("title", re.compile(r" → \d\.\d+ drops “"))
    less.click()
    expect(told).to_have_text(f"{kept - 1} kept of 200")
    tab.rest()
    tab.page.get_by_role("button", name="Keep one more: Relative offset").click()
    expect(told).to_have_text(f"{kept} kept of 200")
    tab.rest()
    # Keys: one step each, ten for a page; the focus stays.
    line.press("Home")
    expect(told).to_have_text("1 kept of 200")  # only the pin
    expect(line).to_be_focused()
    line.press("PageUp")
    line.press("ArrowUp")
    expect(line).to_have_attribute("aria-valuenow", "0.11")
    # Along the curve, keys open one chunk after another.
    walk = tab.rest().page.get_by_role("slider", name="Chunks along the curve")
    walk.press("Home")
    expect(tab.chunk).to_contain_text("Opponent Armor Class 6")
    walk.press("ArrowRight")
    expect(walk).to_have_attribute("aria-valuetext", "The Cleric")
    expect(tab.chunk).to_contain_text("The Cleric")
    expect(walk).to_be_focused()
    # What was dropped earlier is one click away.
    tab.click("fold")
    expect(tab.keyed("curve").locator("path.point")).to_have_count(201)  # and the ring


def meet(one: Any, other: Any) -> bool:
    """Whether two boxes overlap."""
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "width"), ("y", "height"))
    )


def middle(element: Any) -> float:
    box = element.bounding_box()
    return float(box["y"] + box["height"] / 2)
