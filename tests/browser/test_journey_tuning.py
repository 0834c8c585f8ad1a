"""The engineer's way in a real browser: label by keyboard, measure, tune, apply, guard."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from browser.runs import Runs
from ragfilter.cli.program import main
from ragfilter.ingest import bundled
from ragfilter.stores.label_book import LabelBook

pytestmark = [pytest.mark.browser, pytest.mark.model]

SIDE = 50
"""Squares per side of the map of gap threshold and distance offset."""
FIRST = 6
"""The passages that complete a question."""
QUESTIONS = [*bundled.queries("demo").values()][:4]


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    place = copy_demo()
    book = LabelBook(f"sqlite:///{place / 'ragfilter.db'}")
    book.put_set("demo", "few", {f"q{n}": text for n, text in enumerate(QUESTIONS)})
    book.close()
    return place


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str], workspace: Path) -> str:
    return serve_app(RAGFILTER_DATA_DIR=str(workspace))


def test_from_the_first_label_to_the_guard(
    open_tab: Callable[..., Any], workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs()
    tab = open_tab({"profile": "adaptive-gap", "collection": "demo", "open": ""}, watch=runs.watch)
    # Evaluate measures the chosen set by itself.
    tab.visit("Tune").pick("query-set-box", "^few · ").rest().visit("Evaluate")
    tab.click("open-labelling")
    label(tab, QUESTIONS)
    the_selected_text_of_a_passage_is_kept_as_the_evidence(tab, workspace)
    book = LabelBook(f"sqlite:///{workspace / 'ragfilter.db'}")
    grades = Counter(each.grade for each in book.standing("demo") if each.query in QUESTIONS)
    book.close()
    assert grades == {2: 2 * len(QUESTIONS), 0: 4 * len(QUESTIONS)}
    expect(tab.keyed("evaluate", "button")).to_have_text(re.compile(f"Measure {len(QUESTIONS)} questions"))
    tab.rest().click("evaluate")
    expect(tab.page.locator(".rf-lead")).to_contain_text("best fixed k")
    a_view_of_the_run_runs_alone(tab.rest(), runs)
    tab.rest().visit("Tune")
    a_click_on_the_map_or_the_front_sets_what_it_shows(tab)
    tune(tab)
    guard(tab, workspace, tmp_path)
    assert capsys.readouterr().out.count("ok  ") == 3


def the_selected_text_of_a_passage_is_kept_as_the_evidence(tab: Any, workspace: Path) -> None:
    dialog = tab.page.locator("dialog[open]")
    question = "Who guards the evidence?"
    dialog.locator("input").fill(question)
    dialog.locator("input").press("Enter")
    expect(dialog.locator("h1")).to_have_text(question)
    expect(dialog.locator("article p")).not_to_be_empty()
    quote = dialog.locator("article p").evaluate(
        """said => {
            const range = document.createRange()
            range.setStart(said.firstChild, 3)
            range.setEnd(said.firstChild, 40)
            getSelection().removeAllRanges()
            getSelection().addRange(range)
            return `${getSelection()}`
        }"""
    )
    # By mouse: a button for each key, which is drawn as one.
    expect(dialog.locator("kbd").first).to_have_css("border-bottom-width", "2px")
    for key, told in (("2", "with the selected text as evidence"), ("1", "Partly."), ("Esc", "")):
        dialog.locator("button").filter(has=tab.page.locator("kbd", has_text=re.compile(f"^{key}$"))).click()
        if told:
            expect(dialog).to_contain_text(told)
    tab.rest()
    book = LabelBook(f"sqlite:///{workspace / 'ragfilter.db'}")
    first, _ = book.standing("demo", question)
    places = book.quotations("demo")
    book.close()
    assert [each.quote.split() for each in places.values()] == [quote.split()]
    assert places[first.id].quote


def label(tab: Any, questions: list[str]) -> None:
    """Label the first passages of every question by keyboard: a key each, and one to continue."""
    keys, head = tab.page.keyboard, tab.page.locator("dialog h1")
    dialog = tab.page.locator("dialog[open]")
    expect(dialog).to_be_visible()
    tab.rest()
    for number, question in enumerate(questions):
        expect(head).to_have_text(question)
        if number == 0:
            # A label is taken back, and so is the step to the next question.
            keys.press("0")
            keys.press("U")
            expect(dialog).to_contain_text(f"Chunk 1 of {FIRST}")
        for grade in "220000":
            keys.press(grade)
        expect(dialog).to_contain_text(f"Done: {FIRST} labelled")
        if number + 1 < len(questions):
            keys.press("N")


def a_view_of_the_run_runs_alone(tab: Any, runs: Runs) -> None:
    expect(tab.keyed("views-bar")).to_be_visible()
    with runs.only_a_fragment():
        tab.choose("view", "Plots")
        within = tab.page.get_by_text("on these same questions")
        expect(tab.keyed("plot-distances").locator("path.point").first).to_be_attached()
        before = tab.rest().page.get_by_text("on these same questions").inner_text()
        tab.keyed("distance-line").get_by_role("slider").press("End")
        expect(within).not_to_have_text(before)
        tab.rest().choose("view", "Questions")
        expect(tab.keyed("queries-bar")).to_contain_text(f"{len(QUESTIONS)} questions")
        tab.rest()
    tab.open_question()
    expect(tab.page.locator(".rf-headline")).to_contain_text("Plain search found")


def a_click_on_the_map_or_the_front_sets_what_it_shows(tab: Any) -> None:
    tab.keyed("by-hand", "summary").click()
    tab.pick("map-y", "^cutoff: Distance offset$").rest().click("map")
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
    expect(tab.page.get_by_text(re.compile(rf"\b{len(QUESTIONS)} questions (change|keep)"))).to_be_visible()
    clicked = tab.rest().page.url
    # The front is drawn after all settings, and the first of it needs the fewest tokens.
    front = tab.keyed("front-chart").locator(".trace.scatter").nth(1).locator("path.point")
    front.first.scroll_into_view_if_needed()
    tab.rest()
    least = front.first.bounding_box()
    tab.page.mouse.click(least["x"] + least["width"] / 2, least["y"] + least["height"] / 2)
    expect(tab.page).not_to_have_url(clicked)
    tab.rest().click("reset").rest().keyed("by-hand", "summary").click()


def tune(tab: Any) -> None:
    """Get suggested settings, and apply those of a strategy."""
    tab.rest().keyed("tune-rerank", "label").click()
    tab.rest().click("suggest")
    card = tab.keyed("suggestion")
    expect(card).to_contain_text("questions")
    # The best of all may be the current settings.
    tab.pick("tuned-strategy", "^otsu$")
    expect(card).to_contain_text("Strategy: gap → otsu")
    tab.rest().click("apply-tuning")
    expect(card).to_contain_text("These are the current settings.")
    expect(tab.keyed("profile-box", "input")).to_have_value("tuned on demo")


def guard(tab: Any, workspace: Path, folder: Path) -> None:
    """Measure the tuned settings, and run the gate command for the file."""
    tab.rest().visit("Evaluate").click("evaluate")
    expect(tab.keyed("run-box", "input")).to_have_value(re.compile(r"· tuned on demo \("))
    expect(tab.keyed("path")).to_contain_text("Now: Guard")
    tab.rest().click("guard")
    with tab.rest().page.expect_download() as waiting:
        tab.click("guard-baseline")
    baseline = folder / "baseline.json"
    waiting.value.save_as(baseline)
    expect(tab.page.get_by_text("baseline.json was downloaded")).to_be_visible()
    expect(tab.keyed("path")).to_contain_text("✓ Guard")
    expect(tab.keyed("run-box", "input")).to_have_value(re.compile("^[0-9]+ · baseline · tuned on demo"))
    command = tab.page.get_by_test_id("stCode").inner_text().strip()
    assert command.startswith("ragfilter gate --collection demo --queries few ")
    # The page owns its workspace.
    copied = shutil.copytree(workspace, folder / "workspace")
    words = shlex.split(command.replace("baseline.json", str(baseline)))[1:]
    assert main([*words, "--data-dir", str(copied)]) == 0
