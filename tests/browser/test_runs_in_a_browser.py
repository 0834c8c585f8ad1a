"""What a click runs on the server: a change of one panel runs only this panel, and a change of the
theme runs the whole page once."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from labelled_demo import put_labelled
from playwright.sync_api import Page, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from ragfilter.ingest import bundled
from ragfilter.stores.labels import LabelBook
from ragfilter.ui.look.theme import OUTCOMES

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = bundled.queries("demo")["cleric-ac6"]
FEW = 3
SIDE = 50
"""Squares per side of the map of gap threshold and distance offset."""
DRAWN_IN = """colour => {
  const probe = document.createElement("i")
  probe.style.color = colour
  return [...document.querySelectorAll(".st-key-curve path.point")]
    .some(point => point.style.fill === probe.style.color)
}"""
OpenTab = Callable[..., Any]


@dataclass
class Runs:
    """Counts the runs that the server begins for a tab: those of the whole page, and those of a
    fragment alone. Given to `open_tab` with ``watch=runs.watch``."""

    whole: int = 0
    alone: int = 0

    def watch(self, page: Page) -> None:
        page.on("websocket", lambda socket: socket.on("framereceived", self._hear))

    def _hear(self, frame: bytes | str) -> None:
        message = ForwardMsg()
        message.ParseFromString(frame)  # type: ignore[arg-type]
        if message.WhichOneof("type") == "new_session":
            fragments = message.metadata.run.fragment_ids
            self.alone += bool(fragments)
            self.whole += not fragments

    @contextlib.contextmanager
    def only_a_fragment(self) -> Iterator[None]:
        """The block must start a fragment run, and no run of the whole page."""
        whole, alone = self.whole, self.alone
        yield
        assert self.alone > alone
        assert self.whole == whole


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str], copy_demo: Callable[[], Path]) -> str:
    """A server on a demo whose query set few has three labelled questions."""
    workspace = copy_demo()
    book = LabelBook(f"sqlite:///{workspace / 'ragfilter.db'}")
    put_labelled(book, "few", [*bundled.qrels("demo")][-FEW:])
    book.close()
    return serve_app(RAGFILTER_DATA_DIR=str(workspace))


def test_the_theme_and_the_other_prompt(open_tab: OpenTab, runs: Runs) -> None:
    tab = open_tab({"profile": "full", "q": CLERIC, "collection": "demo"}, watch=runs.watch)
    page, pinned = tab.expect_kept(2).rest().page, OUTCOMES["pinned"]
    # The curve is drawn in the colours of the theme, and follows it with one run.
    page.wait_for_function(DRAWN_IN, arg=pinned.colour(dark=False))
    before = runs.whole
    page.get_by_test_id("stMainMenuButton").click()
    page.get_by_test_id("stMainMenuItem-theme-Dark").click()
    page.wait_for_function(DRAWN_IN, arg=pinned.colour(dark=True))
    tab.rest()
    assert (runs.whole, runs.alone) == (before + 1, 0)
    page.keyboard.press("Escape")
    tab.choose("panel-box", "Prompt")
    prompt = tab.keyed("panel")
    expect(prompt).to_contain_text("2 chunks, about 313 tokens")
    tab.rest()
    with runs.only_a_fragment():
        tab.choose("prompt-side", "plain search")
        expect(prompt).to_contain_text("15 chunks, about 2,329 tokens")
        tab.rest()


def test_the_views_of_a_run_and_the_map(open_tab: OpenTab, runs: Runs) -> None:
    tab = open_tab({"profile": "adaptive-gap", "collection": "demo"}, watch=runs.watch)
    tab.visit("Tune").pick("query-set-box", "^few · ").rest().keyed("by-hand", "summary").click()
    tab.pick("map-y", "^cutoff: Distance offset$").rest().click("map")
    a_click_on_the_map_or_the_front_sets_what_it_shows(tab)
    tab.visit("Evaluate").pick("query-set-box", "^few · ")
    expect(tab.keyed("evaluate", "button")).to_have_text(re.compile(f"Measure {FEW} questions"))
    tab.rest().click("evaluate")
    expect(tab.keyed("views-bar")).to_be_visible()
    tab.rest()
    with runs.only_a_fragment():
        tab.choose("view", "Plots")
        within = tab.page.get_by_text("on these same questions")
        expect(tab.keyed("plot-distances").locator("path.point").first).to_be_attached()
        before = tab.rest().page.get_by_text("on these same questions").inner_text()
        tab.keyed("distance-line").get_by_role("slider").press("End")
        expect(within).not_to_have_text(before)
        tab.rest().choose("view", "Questions")
        expect(tab.keyed("queries-bar")).to_contain_text(f"{FEW} questions")
        tab.rest()
    tab.open_question()
    expect(tab.kept).to_be_visible()


def a_click_on_the_map_or_the_front_sets_what_it_shows(tab: Any) -> None:
    points = tab.keyed("map-chart").locator("path.point")
    middle = SIDE // 2 * (SIDE + 1)
    expect(points.nth(middle + SIDE + 1)).to_be_attached()
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
