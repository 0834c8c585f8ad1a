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

from ragfilter.cli.app import main
from ragfilter.ingest import bundled
from ragfilter.stores.labels import LabelBook

pytestmark = [pytest.mark.browser, pytest.mark.model]

FIRST = 6
"""The passages that complete a question."""
ASKED = list(bundled.queries("demo").values())
LABELLED = {bundled.queries("demo")[i] for i in bundled.qrels("demo")}
"""The demo's labelled questions."""
QUESTIONS = ASKED[:20]


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    place = copy_demo()
    book = LabelBook(f"sqlite:///{place / 'ragfilter.db'}")
    book.put_set("demo", "twenty", {f"q{n}": text for n, text in enumerate(QUESTIONS)})
    book.close()
    return place


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str], workspace: Path) -> str:
    return serve_app(RAGFILTER_DATA_DIR=str(workspace))


def test_from_the_first_label_to_the_guard(
    open_tab: Callable[..., Any], workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tab = open_tab(newcomer=True).visit("Evaluate")
    expect(tab.page.locator(".rf-lead")).to_contain_text("the best fixed k")
    tab.pick("query-set-box", "^twenty · ").rest().click("open-labelling")
    label(tab, sorted(QUESTIONS, key=LABELLED.__contains__))
    book = LabelBook(f"sqlite:///{workspace / 'ragfilter.db'}")
    grades = Counter(each.grade for each in book.standing("demo") if each.query in QUESTIONS)
    book.close()
    assert grades == {2: 2 * len(QUESTIONS), 0: 4 * len(QUESTIONS)}
    expect(tab.keyed("evaluate", "button")).to_have_text(re.compile("Measure 20 questions"))
    tab.rest().click("evaluate")
    expect(tab.page.locator(".rf-lead")).to_contain_text("best fixed k")
    tune(tab)
    guard(tab, workspace, tmp_path)
    assert capsys.readouterr().out.count("ok  ") == 3


def test_the_selected_text_of_a_passage_is_kept_as_the_evidence(open_tab: Callable[..., Any], workspace: Path) -> None:
    tab = open_tab({"collection": "demo"}).visit("Evaluate").click("open-labelling")
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
    keys.press("Escape")
    expect(dialog).to_have_count(0)


def tune(tab: Any) -> None:
    """Get suggested settings, and apply those of a strategy."""
    tab.rest().visit("Tune").keyed("tune-rerank", "label").click()
    tab.rest().click("suggest")
    card = tab.keyed("suggestion")
    expect(card).to_contain_text("questions")
    # The best of all may be the current settings.
    tab.pick("tuned-strategy", "^otsu$")
    expect(card).to_contain_text("Strategy: relative → otsu")
    tab.rest().click("apply-tuning")
    expect(card).to_contain_text("These are the current settings.")
    expect(tab.keyed("profile-box", "input")).to_have_value("tuned on twenty")


def guard(tab: Any, workspace: Path, folder: Path) -> None:
    """Measure the tuned settings, and run the gate command for the file."""
    tab.rest().visit("Evaluate").click("evaluate")
    expect(tab.keyed("run-box", "input")).to_have_value(re.compile(r"· tuned on twenty \("))
    expect(tab.keyed("path")).to_contain_text("Now: Guard")
    tab.rest().click("guard")
    with tab.rest().page.expect_download() as waiting:
        tab.click("guard-baseline")
    baseline = folder / "baseline.json"
    waiting.value.save_as(baseline)
    expect(tab.page.get_by_text("baseline.json was downloaded")).to_be_visible()
    expect(tab.keyed("path")).to_contain_text("✓ Guard")
    expect(tab.keyed("run-box", "input")).to_have_value(re.compile("^[0-9]+ · baseline · tuned on twenty"))
    command = tab.page.get_by_test_id("stCode").inner_text().strip()
    assert command.startswith("ragfilter gate --collection demo --queries twenty ")
    # The page owns its workspace.
    copied = shutil.copytree(workspace, folder / "workspace")
    words = shlex.split(command.replace("baseline.json", str(baseline)))[1:]
    assert main([*words, "--data-dir", str(copied)]) == 0
