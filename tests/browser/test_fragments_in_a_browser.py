"""What changes only one panel runs it alone, and what other parts show runs the whole page."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from browser.few import FEW
from browser.few import app as app
from ragfilter.ingest import demo

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = demo.queries()["cleric-ac6"]
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
        """What is done in here must begin a run of a fragment, and none of the whole page."""
        whole, alone = self.whole, self.alone
        yield
        assert self.alone > alone
        assert self.whole == whole


@pytest.fixture
def runs() -> Runs:
    return Runs()


@pytest.fixture
def tab(open_tab: OpenTab, runs: Runs) -> Any:
    """Inspect with the result of a question."""
    tab = open_tab({"profile": "full", "q": CLERIC, "collection": "demo"}, watch=runs.watch)
    return tab.expect_kept(2).rest()


def test_the_other_prompt_and_the_next_scene(tab: Any, runs: Runs) -> None:
    tab.choose("panel-box", "Prompt")
    prompt = tab.keyed("panel")
    expect(prompt).to_contain_text("2 chunks, about 313 tokens")
    tab.rest()
    with runs.only_a_fragment():
        tab.choose("prompt-side", "plain search")
        expect(prompt).to_contain_text("15 chunks, about 2,329 tokens")
        tab.rest()
    tab.click("present-button")
    scene, after = tab.page.locator(".rf-scene"), tab.page.locator(".rf-stack").last
    expect(scene).to_have_text("Everything found")
    tab.rest()
    with runs.only_a_fragment():
        tab.page.keyboard.press("ArrowRight")
        expect(scene).to_contain_text("2 passages pass the filter")
        expect(after.locator("b").first).to_have_text("2")
        tab.rest()


def test_what_rules_do(tab: Any, runs: Runs) -> None:
    tab.visit("Rules").choose("rules-part", "Tester")
    questions = tab.keyed("tester-text", "textarea")
    questions.fill(f"{CLERIC}\nWhat do owls eat?")
    questions.press("Control+Enter")
    explained = tab.keyed("rules-work").locator(".rf-effect")
    expect(tab.page.get_by_text("2 questions, 123 rules")).to_be_visible()
    tab.rest()
    with runs.only_a_fragment():
        tab.click_canvas(150, 0)
        expect(explained).to_contain_text("The chunk passes")
        tab.rest().pick("tester-question", "^What do owls eat").rest()
        expect(explained).to_contain_text("is blocked")

    tab.choose("rules-part", "Matrix")
    expect(tab.page.get_by_text("123 rules over")).to_be_visible()
    tab.rest()
    with runs.only_a_fragment():
        tab.click_canvas(150, 0)
        expect(tab.keyed("matrix-edit", "button")).to_be_visible()
        tab.rest()
    # Another part of the page opens the editor.
    tab.click("matrix-edit")
    expect(tab.chunk.locator("h3")).to_contain_text("MATRIX")

    tab.rest().choose("rules-part", "Bulk").rest().choose("bulk-kind", "Remove the rule")
    changes = tab.keyed("rules-work").locator(".rf-diff b")
    expect(changes).to_have_count(5)
    # Until the labelled questions are gathered, a click ends the waiting for them.
    expect(tab.page.locator(".rf-effect").first).to_contain_text("labelled question")
    first = tab.rest().keyed("rules-work").locator(".rf-diff b").first.inner_text()
    with runs.only_a_fragment():
        tab.keyed("bulk-changes").get_by_role("button", name="Next page").click()
        expect(changes.first).not_to_have_text(first)
        tab.rest()


def test_the_views_of_a_run(tab: Any, runs: Runs) -> None:
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
    with runs.only_a_fragment():
        tab.keyed("distance-line").get_by_role("slider").press("End")
        expect(within).not_to_have_text(before)
        tab.rest().choose("view", "Questions")
        expect(tab.keyed("queries-bar")).to_contain_text(f"{FEW} questions")
        tab.rest()
    tab.open_question()
    expect(tab.kept).to_be_visible()
