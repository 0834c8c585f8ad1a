"""Answers in a real browser: extractive, streamed from an endpoint, and refused by one."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults import FAULTS, Behave, Handler, Server, error_body, page, says, servers
from playwright.sync_api import expect
from waiting import SILENT_S

pytestmark = [pytest.mark.browser, pytest.mark.model]

OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap"}
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


refuses = page(429, error_body("the quota is used up"), "application/json")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    """A chat endpoint on loopback; a test sets its `behave`."""
    with servers() as start:
        yield start(refuses)


@pytest.fixture(scope="module")
def app_with_llm(serve_app: Callable[..., str], endpoint: Server) -> str:
    return serve_app(
        OPENAI_BASE_URL=endpoint.url,
        OPENAI_MODEL="small-model",
        OPENAI_API_KEY="sk-1",
        RAGFILTER_PRICE_PROMPT="1",
        RAGFILTER_PRICE_COMPLETION="1",
        RAGFILTER_CURRENCY="$",
        # No link that names a profile is changed by these.
        MIN_TOP_K="4",
        RAGFILTER_DIVERSITY__ENABLED="true",
        RAGFILTER_RETRIEVAL__K="5",
    )


def test_the_extractive_answer_cites_and_a_citation_opens_its_chunk(open_tab: OpenTab) -> None:
    tab = open_tab(OWLBEARS).expect_kept(4)
    answer = tab.keyed("answer-filtered")
    expect(answer).to_contain_text(re.compile(r"[Oo]wlbear.*\[1\]", re.DOTALL))
    expect(tab.keyed("panel")).to_contain_text("extractive")
    expect(tab.keyed("answer-unfiltered")).to_be_visible()
    tab.rest().keyed("cite-filtered-1", "button").click()
    expect(tab.chunk.locator("h3")).to_have_text("Owlbear")
    tab.rest().choose("panel-box", "Answer")
    expect(answer).to_contain_text("[1]")


def test_values_of_the_environment_say_where_they_came_from(
    open_tab: OpenTab, app_with_llm: str
) -> None:
    tab = open_tab(url=app_with_llm)
    sidebar = tab.page.locator(".stSidebar")
    tab.rest().click("line-idle").open("diversity", "quality", "settings")
    for variable in ("RAGFILTER_DIVERSITY__ENABLED", "MIN_TOP_K", "RAGFILTER_RETRIEVAL__K"):
        expect(sidebar).to_contain_text(f"from the variable {variable}")


def test_an_endpoint_answers_fails_hangs_and_refuses_on_one_page(
    open_tab: OpenTab, app_with_llm: str, endpoint: Server
) -> None:
    tab = open_tab(OWLBEARS, url=app_with_llm)
    the_answer_streams_in_and_is_remembered(tab, endpoint)
    no_answer_makes_the_browser_fetch_anything(tab, endpoint)
    what_fails_leaves_the_extractive_answer(tab, endpoint)
    what_hangs_is_waited_for_visibly_and_can_be_stopped(tab, endpoint)
    what_refuses_says_so_and_the_page_works_on(tab, endpoint)


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


def no_answer_makes_the_browser_fetch_anything(tab: Any, endpoint: Server) -> None:
    leak = f"{endpoint.url}/leak.png"
    endpoint.behave = says(f"Owls ![px]({leak}) [a]({leak}) ![b][c]\n\n[c]: {leak}\n\nsee [1].")
    fetched: list[str] = []
    tab.page.on("request", lambda request: fetched.append(request.url))
    tab.ask("Who owns an owlbear?").click("answer")
    answer = tab.keyed("answer-filtered")
    expect(answer).to_contain_text("see [1].")
    expect(answer).to_contain_text(f"![px]({leak})")
    expect(answer.locator("img, a:has-text('px')")).to_have_count(0)
    tab.rest()
    assert not [url for url in fetched if "leak" in url]


def what_fails_leaves_the_extractive_answer(tab: Any, endpoint: Server) -> None:
    endpoint.behave = FAULTS["cuts the stream"]
    tab.ask("What do owlbears eat?").click("answer")
    answer = tab.keyed("answer-filtered")
    expect(answer).to_contain_text("Trolls")
    expect(answer).to_contain_text("closed the connection before the answer was complete")
    expect(answer).to_contain_text("Without an LLM instead")
    tab.rest().keyed("cite-filtered-1", "button").click()
    expect(tab.chunk.locator("h3")).to_have_text(re.compile("[Oo]wl"))
    tab.rest().choose("panel-box", "Answer").rest()


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
    tab.page.keyboard.press("ArrowLeft")
    expect(tab.page.locator(".rf-scene")).to_have_text("Everything found")
    expect(waiting).to_have_count(0)
    tab.rest().click("present-button").rest()


def what_refuses_says_so_and_the_page_works_on(tab: Any, endpoint: Server) -> None:
    endpoint.behave = refuses
    tab.ask("What is an owlbear worth?").click("answer")
    expect(tab.verdicts).to_have_count(2)
    expect(tab.verdicts.first).to_contain_text(re.compile("429|rate|limit|quota"))
    expect(tab.keyed("curve").locator("path.point").first).to_be_attached()
    tab.rest().ask(OWLBEARS["q"]).expect_kept(4)
    tab.rest().switch("cutoff").expect_kept(5)
