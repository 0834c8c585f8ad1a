"""An endpoint in a real browser: its answers are streamed and stopped, and the page waits for its draft of a rule."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults import FAULTS, Behave, Handler, Server, says, servers
from playwright.sync_api import expect
from waiting import PROCESS_S, SILENT_S

pytestmark = [pytest.mark.browser, pytest.mark.model]

PATIENCE = str(int(PROCESS_S * 1000))
OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap", "judge.timeout_ms": PATIENCE}
CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
GOOD = '{"contain_one_of": [["cleric", "clerics"]]}'
OpenTab = Callable[..., Any]


def in_two_parts(go_on: threading.Event) -> Behave:
    """Sends a beginning, waits to be released, and sends the rest."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        handler.piece("An owlbear is ")
        go_on.wait(SILENT_S)
        handler.piece("part owl [1].")
        handler.event({"choices": [], "usage": {"prompt_tokens": 321, "completion_tokens": 9}})
        handler.event("[DONE]")

    return behave


def held(go_on: threading.Event) -> Behave:
    """Answers with a good rule once it is released."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        go_on.wait(SILENT_S)
        says(GOOD)(handler, body)

    return behave


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    """A chat endpoint on loopback; a test sets its `behave`."""
    with servers() as start:
        yield start(says(GOOD))


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str], endpoint: Server) -> str:
    return serve_app(OPENAI_BASE_URL=endpoint.url, OPENAI_MODEL="small-model")


def test_what_an_endpoint_says_is_waited_for_and_stopped(open_tab: OpenTab, endpoint: Server) -> None:
    tab = open_tab(OWLBEARS).expect_kept(4).rest()
    assert endpoint.asked == []
    an_answer_streams_in(tab, endpoint)
    one_that_hangs_is_stopped(tab, endpoint)
    tab.rest().ask(CLERIC)
    a_judge_that_hangs_is_stopped(tab, endpoint)
    a_draft_is_waited_for_while_the_page_is_used(tab, endpoint)


def an_answer_streams_in(tab: Any, endpoint: Server) -> None:
    go_on = threading.Event()
    endpoint.behave = in_two_parts(go_on)
    tab.click("answer")
    panel = tab.keyed("panel")
    expect(panel).to_contain_text("An owlbear is")
    expect(panel).not_to_contain_text("part owl")
    go_on.set()
    expect(panel.get_by_text("An owlbear is part owl")).to_have_count(2)
    expect(panel).to_contain_text("321")
    tab.rest().keyed("cite-filtered-1", "button").click()
    expect(tab.chunk.locator("h3")).to_have_text("Owlbear")
    assert len(endpoint.asked) == 2
    filtered, unfiltered = (call["body"]["messages"][-1]["content"] for call in endpoint.asked)
    assert OWLBEARS["q"] in filtered
    assert len(filtered) < len(unfiltered)


def one_that_hangs_is_stopped(tab: Any, endpoint: Server) -> None:
    endpoint.behave = FAULTS["hangs"]
    panel = tab.keyed("panel")
    tab.rest().choose("panel-box", "Answer").ask("Where does an owlbear sleep?").click("answer")
    expect(panel).to_contain_text(re.compile(r"Waiting for small-model … \d+ of at most 60 s"))
    tab.click("stop")
    expect(panel).to_contain_text("Stopped before the end.")
    tab.rest()
    # Present does not wait for it before it shows another scene.
    tab.click("present-button").rest().click("scene-flip").rest().click("answer")
    waiting = tab.page.get_by_text("Waiting for small-model")
    expect(waiting).to_be_visible()
    tab.page.keyboard.press("ArrowLeft")
    expect(waiting).to_have_count(0)
    tab.rest().page.keyboard.press("Escape")
    expect(tab.keyed("question", "input")).to_be_visible()


def a_judge_that_hangs_is_stopped(tab: Any, endpoint: Server) -> None:
    endpoint.asked.clear()
    tab.switch("judge").click("need-judge")
    expect(tab.keyed("waiting")).to_contain_text("Asking the LLM")
    tab.keyed("stop-search", "button").click()
    expect(tab.keyed("waiting")).to_have_count(0)
    expect(tab.strip.locator(".rf-fact").first).to_contain_text("not asked yet")
    assert len(endpoint.asked) == 1
    tab.rest().click("undo")
    tab.expect_layers("retrieved", "clearance", "cutoff", "context")


def a_draft_is_waited_for_while_the_page_is_used(tab: Any, endpoint: Server) -> None:
    tab.rest().click_row(0)
    tab.edit_rule()
    before, note = tab.rule.input_value(), tab.keyed("draft-note")
    go_on = threading.Event()
    endpoint.behave = held(go_on)
    tab.click("rule-draft")
    expect(note).to_contain_text("Drafting …")
    tab.click("drafts-stop")
    expect(tab.keyed("drafts-stop")).to_have_count(0)
    expect(tab.rule).to_have_value(before)
    tab.rest().click("rule-draft")
    expect(note).to_contain_text("Drafting …")
    expect(tab.rule).to_be_disabled()
    # A switch, another panel and back: drafting continues.
    tab.switch("query_must")
    tab.expect_layers("retrieved", "clearance", "rules", "cutoff", "context")
    tab.choose("panel-box", "Rounds")
    expect(tab.keyed("panel")).to_contain_text("A re-query loop")
    tab.choose("panel-box", "Chunk")
    expect(note).to_contain_text("Drafting …")
    go_on.set()
    # The browser shows the new text a moment after it has reopened the box.
    expect(tab.rule).to_be_enabled()
    expect(tab.rule).to_have_value(re.compile("clerics"))
    assert json.loads(tab.rule.input_value()) == json.loads(GOOD)
    expect(note).to_contain_text("Drafted by small-model with the template attack-matrix.")
