"""The map and the front of Tune in a real browser: a click on either sets what it shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.few import FEW
from browser.few import app as app

pytestmark = [pytest.mark.browser, pytest.mark.model]

SIDE = 50
"""Squares of the map of the gap threshold and the distance offset, a side."""


def test_the_map_is_clicked(open_tab: Callable[..., Any]) -> None:
    tab = open_tab({"profile": "adaptive-gap", "collection": "demo"}).visit("Tune")
    tab.pick("query-set-box", "^few · ").rest().keyed("by-hand", "summary").click()
    tab.pick("map-y", "^cutoff: Distance offset$").rest().click("map")
    expect(tab.keyed("map-chart")).to_contain_text("Distance offset")
    points = tab.keyed("map-chart").locator("path.point")
    middle = SIDE // 2 * (SIDE + 1)
    expect(points.nth(middle + SIDE + 1)).to_be_attached()
    tab.rest()
    assert "cutoff.gap_threshold" not in tab.page.url
    points.nth(middle).scroll_into_view_if_needed()
    tab.rest()
    # Near the corner, a little less than halfway to the next square.
    square, next_one = (points.nth(n).bounding_box() for n in (middle, middle + SIDE + 1))
    x, y = (square[way] + 0.4 * (next_one[way] - square[way]) + 2.5 for way in "xy")
    tab.page.mouse.click(x, y)
    expect(tab.page).to_have_url(re.compile("cutoff.gap_threshold="))
    expect(tab.page.get_by_text(f"of {FEW} questions change")).to_be_visible()
    clicked = tab.rest().page.url
    # The front is drawn after all settings, and the first of it needs the fewest tokens.
    front = tab.keyed("front-chart").locator(".trace.scatter").nth(1).locator("path.point")
    front.first.scroll_into_view_if_needed()
    tab.rest()
    least = front.first.bounding_box()
    tab.page.mouse.click(least["x"] + least["width"] / 2, least["y"] + least["height"] / 2)
    expect(tab.page).not_to_have_url(clicked)
    tab.rest()
