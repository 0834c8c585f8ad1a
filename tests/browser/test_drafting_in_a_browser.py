"""A rule drafted by a real endpoint in a real browser: awaited, used, stopped, reverted."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults import FAULTS, Behave, Handler, Server, says, servers
from playwright.sync_api import expect
from waiting import SILENT_S

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
LINK = {"q": CLERIC, "profile": "query-must"}
GOOD = '{"contain_one_of": [["cleric", "clerics"]]}'
MINE = '{"contain": "wizard"}'
OpenTab = Callable[..., Any]


def held(go_on: threading.Event) -> Behave:
    """Answers with a good rule once it is released."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        go_on.wait(SILENT_S)
        says(GOOD)(handler, body)

    return behave


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    with servers() as start:
        yield start(says(GOOD))


@pytest.fixture(scope="module")
def app_with_llm(serve_app: Callable[..., str], endpoint: Server) -> str:
    return serve_app(OPENAI_BASE_URL=endpoint.url, OPENAI_MODEL="small-model")


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
    # The click also ends the typing.
    tab.write_rule(MINE).click("rule-draft")
    expect(tab.keyed("draft-note")).to_contain_text("Asking small-model for a rule …")
    expect(tab.rule).to_be_disabled()
    # A switch, another panel and back: drafting continues.
    tab.switch("query_must")
    tab.expect_layers("retrieved", "clearance", "top_k", "context")
    tab.switch("query_must")
    tab.expect_layers("retrieved", "clearance", "query_must", "top_k", "context")
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
    # The text typed before can be brought back.
    tab.rest().click("rule-swap")
    expect(tab.rule).to_have_value(MINE)
    tab.rest().click("rule-swap")
    expect(tab.rule).to_have_value(re.compile("clerics"))
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
