"""An endpoint in a real browser: its answers are streamed, asked again and stopped, and its draft
of a rule is waited for."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults import FAULTS, Behave, Handler, Server, says, servers
from playwright.sync_api import expect
from waiting import PROCESS_S, SILENT_S

pytestmark = [pytest.mark.browser, pytest.mark.model]

OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap"}
CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
LINK = {"q": CLERIC, "profile": "query-must"}
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


def second_takes_longer(handler: Handler, body: dict[str, Any]) -> None:
    """Answers every second call, the one without the filter, two seconds later."""
    if len(handler.server.asked) % 2 == 0:
        time.sleep(2)
    handler.start()
    handler.piece("Owlbears attack on sight [1].")
    tokens = len(body["messages"][-1]["content"])
    handler.event({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 9}})
    handler.event("[DONE]")


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
def app_with_llm(serve_app: Callable[..., str], endpoint: Server) -> str:
    return serve_app(
        OPENAI_BASE_URL=endpoint.url,
        OPENAI_MODEL="small-model",
        OPENAI_API_KEY="sk-1",
        RAGFILTER_PRICE_PROMPT="1",
        RAGFILTER_PRICE_COMPLETION="1",
        RAGFILTER_CURRENCY="$",
    )


def test_an_answer_streams_in_and_one_that_hangs_is_stopped(
    open_tab: OpenTab, app_with_llm: str, endpoint: Server
) -> None:
    tab = open_tab(OWLBEARS, url=app_with_llm)
    the_answer_streams_in_and_is_remembered(tab, endpoint)
    what_hangs_is_waited_for_visibly_and_can_be_stopped(tab, endpoint)
    judge = {"q": CLERIC, "profile": "llm-filter", "judge.timeout_ms": str(int(PROCESS_S * 1000))}
    a_judge_that_hangs_is_stopped(open_tab(judge, url=app_with_llm), endpoint)


def the_answer_streams_in_and_is_remembered(tab: Any, endpoint: Server) -> None:
    go_on = threading.Event()
    endpoint.behave = in_two_parts(go_on)
    tab.expect_kept(4).rest()
    assert endpoint.asked == []
    expect(tab.keyed("answer", "button")).to_contain_text("small-model")
    expect(tab.keyed("answer-again")).to_have_count(0)
    tab.click("answer")
    panel = tab.keyed("panel")
    expect(panel).to_contain_text("An owlbear is")
    expect(panel).not_to_contain_text("part owl")
    go_on.set()
    expect(panel.get_by_text("An owlbear is part owl")).to_have_count(2)
    expect(panel).to_contain_text("321")
    tab.rest().keyed("cite-filtered-1", "button").click()
    expect(tab.chunk.locator("h3")).to_have_text("Owlbear")
    tab.rest().choose("panel-box", "Answer")
    expect(tab.keyed("answer-filtered")).to_contain_text("An owlbear is part owl [1].")
    assert len(endpoint.asked) == 2
    filtered, unfiltered = (call["body"]["messages"][-1]["content"] for call in endpoint.asked)
    assert OWLBEARS["q"] in filtered
    assert len(filtered) < len(unfiltered)
    # The answers are asked for again. The sum is told, and people say which is better.
    endpoint.behave = second_takes_longer
    tab.rest().click("answer-again")
    expect(panel).to_contain_text(re.compile(r"with the filter \d+% cheaper, \d\.\d s faster"))
    expect(panel.get_by_text("Owlbears attack on sight")).to_have_count(2)
    assert len(endpoint.asked) == 4
    tab.rest().click("prefer-inspect-first")
    expect(panel).to_contain_text("This pair: 1 vote, 1 for filtered.")
    tab.rest().click("prefer-inspect-neither")
    expect(panel).to_contain_text("This pair: 1 vote, 1 both poor.")
    # A room is told what a question costs less.
    tab.rest().page.keyboard.press("p")
    expect(tab.page.locator(".rf-headline")).to_contain_text(
        re.compile(r"\$0\.\d{4} saved per question")
    )
    tab.rest().page.keyboard.press("p")
    expect(tab.keyed("question", "input")).to_be_visible()
    tab.rest()


def what_hangs_is_waited_for_visibly_and_can_be_stopped(tab: Any, endpoint: Server) -> None:
    endpoint.behave = FAULTS["hangs"]
    tab.ask("Where does an owlbear sleep?").click("answer")
    panel = tab.keyed("panel")
    expect(panel).to_contain_text(re.compile(r"Waiting for small-model … \d+ of at most 60 s"))
    tab.click("stop")
    expect(panel).to_contain_text("Stopped before the end.")
    tab.rest()
    expect(tab.keyed("answer", "button")).to_be_enabled()
    # Present does not wait for it before it shows another scene.
    tab.click("present-button").rest().click("answer")
    waiting = tab.page.get_by_text("Waiting for small-model")
    expect(waiting).to_be_visible()
    tab.page.keyboard.press("ArrowRight")
    expect(tab.page.locator(".rf-scene")).not_to_have_text("Everything found")
    expect(waiting).to_have_count(0)
    tab.rest().click("present-button").rest()


def a_judge_that_hangs_is_stopped(tab: Any, endpoint: Server) -> None:
    endpoint.asked.clear()
    tab.rest().click("need-judge")
    expect(tab.keyed("waiting")).to_contain_text("Asking the LLM")
    tab.keyed("stop-search", "button").click()
    expect(tab.keyed("waiting")).to_have_count(0)
    expect(tab.strip.locator(".rf-fact").first).to_contain_text("not asked yet")
    assert len(endpoint.asked) == 1


def test_a_draft_is_waited_for_reverted_stopped_and_never_cut_off(
    open_tab: OpenTab, app_with_llm: str, endpoint: Server
) -> None:
    tab = open_tab(LINK, url=app_with_llm).expect_kept(15).rest()
    expect(tab.cell(1, "title")).to_have_text(re.compile(r"Armor Class 7\s*$"))
    tab.click_row(1)
    expect(tab.chunk.locator("h3")).to_have_text(re.compile("Armor Class 7$"))
    tab.edit_rule()
    expect(tab.rule).to_have_value(re.compile("contain_one_of"))
    a_draft_is_waited_for_while_the_page_is_used(tab, endpoint)
    a_draft_is_stopped_and_a_failure_is_told(tab, endpoint)


def a_draft_is_waited_for_while_the_page_is_used(tab: Any, endpoint: Server) -> None:
    before = tab.rest().rule.input_value()
    go_on = threading.Event()
    endpoint.behave = held(go_on)
    endpoint.asked.clear()
    tab.click("rule-draft")
    expect(tab.keyed("draft-note")).to_contain_text("Asking small-model for a rule …")
    expect(tab.rule).to_be_disabled()
    # A switch, another panel and back: drafting continues.
    tab.switch("query_must")
    tab.expect_layers("retrieved", "clearance", "top k", "context")
    tab.switch("query_must")
    tab.expect_layers("retrieved", "clearance", "query_must", "top k", "context")
    tab.choose("panel-box", "Rounds")
    expect(tab.keyed("panel")).to_contain_text("A re-query loop would take")
    tab.choose("panel-box", "Chunk")
    expect(tab.keyed("draft-note")).to_contain_text("Asking small-model for a rule …")
    go_on.set()
    expect(tab.rule).to_be_enabled()
    # The browser shows the new text a moment after it has reopened the box.
    expect(tab.rule).to_have_value(re.compile("clerics"))
    assert len(endpoint.asked) == 1
    assert json.loads(tab.rule.input_value()) == json.loads(GOOD)
    note = tab.keyed("draft-note")
    expect(note).to_contain_text("Drafted by small-model with the template attack-matrix.")
    expect(note).to_contain_text("7 + 3 tokens")
    expect(tab.verdicts.first).to_contain_text(
        "Enters the kept list: I.A. ATTACK MATRIX FOR … Armor Class 7"
    )
    outcome = tab.cell(1, "outcome")
    expect(outcome).to_have_text("✕ dropped")
    tab.rest().click("rule-save")
    expect(outcome).to_have_text("● kept")
    tab.rest().click("rule-undo")
    expect(outcome).to_have_text("✕ dropped")
    expect(tab.rule).to_have_value(before)


def a_draft_is_stopped_and_a_failure_is_told(tab: Any, endpoint: Server) -> None:
    before = tab.rest().rule.input_value()
    go_on = threading.Event()
    endpoint.behave = held(go_on)
    tab.click("rule-draft")
    expect(tab.keyed("draft-note")).to_contain_text("Asking small-model")
    tab.click("rule-draft-stop")
    expect(tab.keyed("draft-note")).to_contain_text("Stopped. Nothing was changed.")
    expect(tab.rule).to_be_enabled()
    go_on.set()
    endpoint.behave = FAULTS["401"]
    tab.rest().click("rule-draft")
    expect(tab.keyed("draft-note")).to_contain_text("Check OPENAI_API_KEY")
    expect(tab.rule).to_have_value(before)
    expect(tab.keyed("rule-discard")).to_have_count(0)
    tab.expect_kept(15)
