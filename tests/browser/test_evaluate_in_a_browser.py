"""An imported query set, and the map of Tune in a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from ragfilter.ingest import demo

pytestmark = [pytest.mark.browser, pytest.mark.model]

OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap", "collection": "demo"}
BEHOLDER = "What is a beholder?"
TEN = [i for i in demo.queries() if i in demo.qrels()][-10:]
OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str]) -> str:
    return serve_app()


def visit(tab: Any, page: str) -> Any:
    tab.page.get_by_test_id("stTopNavLink").get_by_text(page, exact=True).click()
    return tab.rest()


def resize(tab: Any, width: int) -> None:
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.rest()


def test_a_set_is_imported_its_questions_open_and_the_map_is_clicked(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    tab = open_tab(OWLBEARS | {"open": "evidence"})
    visit(tab, "Evaluate")
    expect(tab.keyed("evaluate", "button")).to_be_visible()
    import_ten(tab, tmp_path)
    tab.rest().click("evaluate")
    expect(tab.page.locator(".rf-lead")).to_contain_text("best fixed k")
    tab.choose("view", "Questions")
    expect(tab.keyed("queries-bar")).to_contain_text("10 questions")
    tab.open_question()
    question = tab.rest().keyed("question", "input").input_value()
    assert question in {demo.queries()[i] for i in TEN}
    visit(tab, "Tune")
    tab.rest().keyed("by-hand", "summary").click()
    click_the_map(tab, "cutoff: Distance offset", 50)


def import_ten(tab: Any, folder: Path) -> None:
    """Import ten of the demo's questions with their labels as a query set."""
    open_sets(tab)
    asked = [json.dumps({"_id": i, "text": demo.queries()[i]}) for i in TEN]
    rows = [f"{i}\t{c}\t{g}" for i in TEN for c, g in demo.qrels()[i].items()]
    (folder / "ten.jsonl").write_text("\n".join(asked), "utf-8")
    (folder / "qrels.tsv").write_text("\n".join(rows), "utf-8")
    # One after the other: Streamlit forgets to answer an uploader while a run begins, and the first
    # file starts one.
    for box, file, told in (
        ("set-file-0", "ten.jsonl", "Import questions"),
        ("set-qrels-0", "qrels.tsv", "Import questions and labels"),
    ):
        tab.rest().keyed(box).locator("input[type=file]").set_input_files(folder / file)
        expect(tab.keyed("set-import", "button")).to_have_text(told)
    tab.rest().click("set-import")
    expect(tab.keyed("evaluate", "button")).to_have_text(re.compile("Measure 10 questions"))
    open_sets(tab)


def open_sets(tab: Any) -> None:
    """Switch between the results and the questions with their labels."""
    tab.rest().click("evaluate-more").rest().keyed("sets-open", "label").click()
    tab.rest().page.keyboard.press("Escape")
    tab.rest()


def click_the_map(tab: Any, vertical: str, side: int) -> None:
    """Draw the map of the gap threshold and this setting, with so many squares a side, and click
    one of them, then the first setting of the front. Each click sets what it shows."""
    tab.pick("map-y", f"^{vertical}$").rest().click("map")
    expect(tab.keyed("map-chart")).to_contain_text(vertical.partition(": ")[2])
    points = tab.keyed("map-chart").locator("path.point")
    middle = side // 2 * (side + 1)
    expect(points.nth(middle + side + 1)).to_be_attached()
    tab.rest()
    assert "cutoff.gap_threshold" not in tab.page.url
    points.nth(middle).scroll_into_view_if_needed()
    tab.rest()
    # Near the corner, a little less than halfway to the next square.
    square, next_one = (points.nth(n).bounding_box() for n in (middle, middle + side + 1))
    x, y = (square[way] + 0.4 * (next_one[way] - square[way]) + 2.5 for way in "xy")
    tab.page.mouse.click(x, y)
    expect(tab.page).to_have_url(re.compile("cutoff.gap_threshold="))
    expect(tab.page.get_by_text("of 10 questions change")).to_be_visible()
    clicked = tab.rest().page.url
    # The front is drawn after all settings, and the first of it needs the fewest tokens.
    front = tab.keyed("front-chart").locator(".trace.scatter").nth(1).locator("path.point")
    front.first.scroll_into_view_if_needed()
    tab.rest()
    least = front.first.bounding_box()
    tab.page.mouse.click(least["x"] + least["width"] / 2, least["y"] + least["height"] / 2)
    expect(tab.page).not_to_have_url(clicked)
    tab.rest()
