"""The engineer's way in a real browser: label, measure, tune, apply, guard; by keyboard and by
mouse."""

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

from ragfilter.cli import main
from ragfilter.ingest import demo
from ragfilter.stores.labels import LabelBook

pytestmark = [pytest.mark.browser, pytest.mark.model]

FIRST = 6
"""The passages with which a question is done."""
ASKED = list(demo.queries().values())
LABELLED = {demo.queries()[i] for i in demo.qrels()}
"""The questions for which the demo brings labels."""
SETS = {"twenty": ASKED[:20], "five": [*ASKED[30:34], "What is a lightsaber?"]}


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    place = copy_demo()
    book = LabelBook(f"sqlite:///{place / 'ragfilter.db'}")
    for name, questions in SETS.items():
        book.put_set("demo", name, {f"{name}-{n}": text for n, text in enumerate(questions)})
    book.close()
    return place


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str], workspace: Path) -> str:
    return serve_app(RAGFILTER_DATA_DIR=str(workspace))


class Hand:
    """Acts on the page by keyboard or by mouse, and counts."""

    def __init__(self, tab: Any, *, keys: bool) -> None:
        self.tab, self.keys, self.actions = tab, keys, 0

    def press(self, key: str) -> None:
        """Press one of the page's buttons."""
        button = self.tab.rest().keyed(key, "button")
        expect(button).to_have_count(1)
        if self.keys:
            button.focus()
            self.tab.page.keyboard.press("Enter")
        else:
            button.click()

    def mode(self, key: str) -> None:
        """Press a key of the labelling mode, or its button."""
        self.actions += 1
        if self.keys:
            self.tab.page.keyboard.press(key)
        else:
            button = self.tab.page.locator("dialog button")
            button.filter(has=self.tab.page.locator("kbd", has_text=re.compile(f"^{key}$"))).click()

    def visit(self, page: str) -> None:
        link = self.tab.rest().page.get_by_test_id("stTopNavLink").filter(has_text=page)
        if self.keys:
            link.focus()
            self.tab.page.keyboard.press("Enter")
        else:
            link.click()
        self.tab.rest()


@pytest.mark.parametrize(("name", "keys"), [("twenty", True), ("five", False)])
def test_from_the_first_label_to_the_guard(
    open_tab: Callable[..., Any],
    workspace: Path,
    tmp_path: Path,
    name: str,
    keys: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    questions = SETS[name]
    tab = open_tab(newcomer=True)
    hand = Hand(tab, keys=keys)
    hand.visit("Evaluate")
    expect(tab.page.locator(".rf-lead")).to_contain_text("the best fixed k")
    tab.pick("query-set-box", f"^{name} · ")
    hand.press("open-labelling")
    label(hand, sorted(questions, key=LABELLED.__contains__))
    labels = stored(workspace, questions)
    assert Counter(labels.values()) == {2: 2 * len(questions), 0: 4 * len(questions)}

    expect(tab.keyed("evaluate", "button")).to_have_text(
        re.compile(f"Measure {len(questions)} questions")
    )
    hand.press("evaluate")
    expect(tab.page.locator(".rf-lead")).to_contain_text("best fixed k")
    tune(hand, name)
    guard(hand, name, len(questions), workspace, tmp_path)
    assert capsys.readouterr().out.count("ok  ") == 3


def test_the_selected_text_of_a_passage_is_kept_as_the_evidence(
    open_tab: Callable[..., Any], workspace: Path
) -> None:
    tab = open_tab({"collection": "demo"})
    hand = Hand(tab, keys=False)
    hand.visit("Evaluate")
    hand.press("open-labelling")
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
    hand.mode("2")
    expect(dialog).to_contain_text("Relevant, with the selected text as evidence.")
    hand.mode("1")
    expect(dialog).to_contain_text("Partly.")
    hand.mode("Esc")
    tab.rest()
    book = LabelBook(f"sqlite:///{workspace / 'ragfilter.db'}")
    first, _ = book.standing("demo", question)
    places = book.places("demo")
    book.close()
    assert [each.quote.split() for each in places.values()] == [quote.split()]
    assert places[first.id].quote


def label(hand: Hand, questions: list[str]) -> None:
    """Label the first passages of every question: one action each, and one to go on."""
    page = hand.tab.page
    dialog, head = page.locator("dialog[open]"), page.locator("dialog h1")
    expect(dialog).to_be_visible()
    hand.tab.rest()
    for number, question in enumerate(questions):
        expect(head).to_have_text(question)
        if number == 0:
            # A label is taken back, and so is the step to the next question.
            for key in "0U":
                hand.mode(key)
            expect(dialog).to_contain_text("Chunk 1 of 6")
            hand.actions = 0
        for grade in "220000":
            hand.mode(grade)
        expect(dialog).to_contain_text("Done: 6 labelled")
        if number + 1 < len(questions):
            hand.mode("N")
    assert hand.actions <= len(questions) * (FIRST + 1)
    hand.mode("Escape" if hand.keys else "Esc")
    expect(dialog).to_have_count(0)


def stored(workspace: Path, questions: list[str]) -> dict[tuple[str, str], int]:
    """The stored grades of these questions by question and chunk."""
    book = LabelBook(f"sqlite:///{workspace / 'ragfilter.db'}")
    found = {
        (each.query, each.chunk_id): each.grade
        for each in book.standing("demo")
        if each.query in questions
    }
    book.close()
    return found


def tune(hand: Hand, name: str) -> None:
    """Have settings suggested, and apply those of a strategy."""
    tab = hand.tab
    hand.visit("Tune")
    tab.keyed("tune-rerank", "label").click()
    hand.press("suggest")
    card = tab.keyed("suggestion")
    expect(card).to_contain_text("questions")
    # The best of all may be the current settings.
    tab.pick("tuned-strategy", "^otsu$")
    expect(card).to_contain_text("Strategy: relative → otsu")
    hand.press("apply-tuning")
    expect(card).to_contain_text("These are the current settings.")
    expect(tab.keyed("profile-box", "input")).to_have_value(f"tuned on {name}")


def guard(hand: Hand, name: str, count: int, workspace: Path, folder: Path) -> None:
    """Measure the tuned settings, and run the command that guards them on the file."""
    tab = hand.tab
    hand.visit("Evaluate")
    hand.press("evaluate")
    expect(tab.keyed("run-box", "input")).to_have_value(re.compile(rf"{name} · tuned on {name} \("))
    expect(tab.keyed("path")).to_contain_text("Now: Guard")
    tab.rest()
    hand.press("guard")
    with tab.rest().page.expect_download() as waiting:
        hand.press("guard-baseline")
    baseline = folder / "baseline.json"
    waiting.value.save_as(baseline)
    expect(tab.keyed("path")).to_contain_text("✓ Guard")
    expect(tab.keyed("path-next")).to_have_count(0)
    command = tab.page.get_by_test_id("stCode").inner_text().strip()
    assert command.startswith(f"ragfilter gate --collection demo --queries {name} ")
    # The page owns its workspace.
    copied = shutil.copytree(workspace, folder / "workspace")
    words = shlex.split(command.replace("baseline.json", str(baseline)))[1:]
    assert main([*words, "--data-dir", str(copied)]) == 0
