"""An LLM drafts rules for a selection on the Rules page. The endpoint is a real server on loopback.

Each answer has 7 and 3 tokens, at prices of 100 and 200 per thousand.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import Handler, Server, says
from rules_page import told
from waiting import PROCESS_S

from ragfilter.model import User
from ragfilter.ui import resources
from ragfilter.ui.kit.rule_editor import llm_drafts
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model

SECRET = "secret-treasure-maps"
DRAGON = '{"contain_one_of": [["dragon", "dragons"]]}'
STORED = '{"contain_one_of":[["dragon","dragons"]]}'
ABSENT = '{"contain_one_of": [["submarine"]]}'


@pytest.fixture
def endpoint(endpoint: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    endpoint.behave = says(DRAGON)
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_MODEL", "small-model")
    monkeypatch.setenv("RAGFILTER_ANSWER_TIMEOUT_S", str(PROCESS_S))
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "100000")
    monkeypatch.setenv("RAGFILTER_PRICE_COMPLETION", "200000")
    return endpoint


@pytest.fixture
def page(open_page: Any, workspace: Path, endpoint: Server) -> Iterator[Any]:
    """The Findings for the chunks about dragons; drafts and rules are reverted."""
    page = drafts_of(open_page(workspace=workspace, on="rules"), "dragon")
    before = rules()
    yield page
    bench().drafts.forget("demo", list(before))
    now = rules()
    bench().collection("demo").set_rules({i: r for i, r in before.items() if now[i] != r})


def drafts_of(page: Any, words: str) -> Any:
    page.at.text_input(key="rules-text").set_value(words)
    page.run()
    return page.choose("rules-part", "Findings")


def bench() -> Workbench:
    found: Workbench = resources.open_resources().bench
    return found


def rules() -> dict[str, str | None]:
    return {i: chunk.rule for i, chunk in bench().collection("demo").catalogue().items()}


def last_run() -> Any:
    return llm_drafts.last_run("demo", resources.open_resources())


def drafted(page: Any) -> Any:
    """The page once the run has ended."""
    last_run().wait(PROCESS_S)
    return page.run()


def asked(server: Server) -> list[str]:
    prompts = (call["body"]["messages"][1]["content"] for call in server.asked)
    return [prompt.partition("<chunk>\ntitle: ")[2].partition("\n")[0] for prompt in prompts]


def frame(page: Any) -> Any:
    """The findings that are drafts."""
    (found,) = [f.value for f in page.at.dataframe if "finding" in f.value]
    return found[found["kind"] == "draft"]


def only_drafts(page: Any) -> Any:
    page.at.multiselect(key="findings-kinds").set_value(["draft"])
    return page.run()


def test_without_an_llm_the_page_says_what_is_missing(open_page: Any, workspace: Path) -> None:
    page = drafts_of(open_page(workspace=workspace, on="rules"), "dragon")
    assert "Drafting needs an LLM: set OPENAI_API_KEY" in told(page)
    assert "drafts-begin" not in page.buttons


def test_the_cost_is_told_first_and_drafts_are_accepted_as_one_step(page: Any, endpoint: Server) -> None:
    titles = {chunk.title for chunk in bench().collection("demo").catalogue().values() if "dragon" in chunk.id}
    doubtful = min(titles)

    def draft(handler: Handler, body: dict[str, Any]) -> None:
        says(ABSENT if f"title: {doubtful}\n" in body["messages"][1]["content"] else DRAGON)(handler, body)

    endpoint.behave = draft
    n = int(page.at.button(key="drafts-begin").label.split()[1])
    assert 2 < n < 60
    assert f"{n} chunks: about " in told(page)
    assert "read and written by small-model" in told(page)
    assert "cost " in told(page)
    assert endpoint.asked == []
    before = rules()
    drafted(page.press("drafts-begin"))
    assert len(endpoint.asked) >= n
    assert rules() == before
    found = frame(page)
    assert len(found) == n
    calls = len(endpoint.asked)
    # 7 tokens at 0.1 and 3 at 0.2 each.
    assert f"{7 * calls:,} + {3 * calls:,} tokens, cost {1.3 * calls:.4f}" in told(page)
    sure = [i for i, fix in enumerate(found["fix"]) if fix == "certain"]
    assert 0 < len(sure) < n
    only_drafts(page)
    assert page.at.button(key="findings-save").label.startswith(f"Apply {len(sure)} rule")
    # The same rule on every chunk loses chunks that labelled questions need, so a confirmation is required.
    assert page.at.button(key="findings-save").disabled
    page.at.checkbox(key="findings-sure").check()
    page.run().press("findings-save")
    after = rules()
    assert sum(after[i] != before[i] for i in after) == len(sure)
    assert {after[i] for i in after if after[i] != before[i]} == {STORED}
    (step,) = bench().journal.steps("demo", limit=1)
    assert (step.size, step.done) == (len(sure), len(sure))
    assert len(frame(page)) == n - len(sure)


def test_a_stopped_run_keeps_its_drafts_and_the_next_one_skips_them(page: Any, endpoint: Server) -> None:
    stopped = threading.Event()

    def held(handler: Handler, body: dict[str, Any]) -> None:
        if len(endpoint.asked) > 2:
            stopped.wait(PROCESS_S)
        says(DRAGON)(handler, body)

    endpoint.behave = held
    n = int(page.at.button(key="drafts-begin").label.split()[1])
    page.press("drafts-begin")
    while len(bench().drafts.drafts("demo")) < 2:
        time.sleep(0.01)
    run = last_run()
    page.press("drafts-stop")
    stopped.set()
    run.wait(PROCESS_S)
    page.run()
    first = bench().drafts.drafts("demo")
    assert 2 <= len(first) < n
    assert page.at.button(key="drafts-begin").label == f"Draft {n - len(first)} rules"
    endpoint.behave = says(DRAGON)
    drafted(page.press("drafts-begin"))
    every = bench().drafts.drafts("demo")
    assert every[: len(first)] == first
    assert len({draft.chunk_id for draft in every}) == n
    # An endpoint that refuses ends the run.
    page.press("drafts-forget")
    assert bench().drafts.drafts("demo") == ()
    endpoint.behave = lambda handler, _: handler.reply(401, "{}")
    drafted(page.press("drafts-begin"))
    assert "Drafting stopped." in told(page)
    assert "Finished drafts are kept." in told(page)
    assert "These chunks got no draft. Draft again to retry." in told(page)
    endpoint.behave = says(ABSENT)
    drafted(page.press("drafts-begin"))
    remarks = ["; ".join(each.remarks) for each in bench().drafts.drafts("demo")]
    assert all("requires what the chunk itself does not contain" in each for each in remarks)
    assert set(frame(page)["fix"]) == {"check first"}


def test_a_collection_has_one_run_which_other_users_do_not_see(
    page: Any, open_page: Any, workspace: Path, endpoint: Server
) -> None:
    going_on = threading.Event()

    def held(handler: Handler, body: dict[str, Any]) -> None:
        going_on.wait(PROCESS_S)
        says(DRAGON)(handler, body)

    endpoint.behave = held
    # Drawn before the first run begins.
    other = drafts_of(open_page(workspace=workspace, on="rules"), "ogre")
    n = int(page.at.button(key="drafts-begin").label.split()[1])
    page.press("drafts-begin")
    other.press("drafts-begin")
    # Its figures count chunks that another user cannot see.
    assert "drafts-stop" in other.buttons
    assert f"Drafting: 0 of {n}" in other.sent
    other.session.user = User(1)
    assert "Rules are being drafted for another user." in told(other.run())
    assert f"Drafting: 0 of {n}" not in other.sent
    assert "drafts-stop" not in other.buttons
    going_on.set()
    drafted(page)
    assert len(bench().drafts.drafts("demo")) == n


def test_a_chunk_that_the_user_may_not_see_is_neither_sent_nor_told_of(
    open_page: Any, workspace: Path, endpoint: Server
) -> None:
    link = {"profile": "adaptive-gap"}
    page = drafts_of(open_page(link, workspace=workspace, on="rules"), "treasure")
    chunk = bench().collection("demo").chunks([SECRET])[SECRET]
    assert not page.session.user.sees(chunk)
    # An operator sees it in the table, but it is still not sent.
    page.session.operator = True
    page.run()
    drafted(page.press("drafts-begin"))
    assert asked(endpoint)
    assert chunk.title not in asked(endpoint)
    bench().drafts.forget("demo", list(rules()))
