"""An LLM drafts rules for a selection on the Rules page. The endpoint is a real server on loopback.

Each answer has 7 and 3 tokens, at prices of 100 and 200 per thousand.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import Handler, Server, says, servers
from rules_page import open_rules
from waiting import PROCESS_S

from ragfilter.model import User
from ragfilter.rules.draft_book import DraftBook
from ragfilter.ui.rules import drafting_run
from ragfilter.ui.session import resources
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model

SECRET = "secret-treasure-maps"
DRAGON = '{"contain_one_of": [["dragon", "dragons"]]}'
STORED = '{"contain_one_of":[["dragon","dragons"]]}'
ABSENT = '{"contain_one_of": [["submarine"]]}'
TEMPLATE = """\
version = 1
[recognise]
title = ['\\bdragons?\\b']
[prompt]
holds = "The dragon's colour."
[example]
title = "Green Dragon"
rule = '{"contain": "green dragon"}'
"""


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    return copy_demo()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with servers() as start:
        yield start(says(DRAGON))


@pytest.fixture
def endpoint(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    server.behave = says(DRAGON)
    server.asked.clear()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_MODEL", "small-model")
    monkeypatch.setenv("RAGFILTER_ANSWER_TIMEOUT_S", str(PROCESS_S))
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "100000")
    monkeypatch.setenv("RAGFILTER_PRICE_COMPLETION", "200000")
    return server


@pytest.fixture
def page(open_page: Callable[..., Any], workspace: Path, endpoint: Server) -> Iterator[Any]:
    """The Suggest part for the chunks about dragons; drafts and rules are reverted."""
    page = drafts_of(open_page(workspace=workspace), "dragon")
    before = rules()
    yield page
    bench().drafts.forget("demo", list(before))
    now = rules()
    bench().collection("demo").set_rules({i: r for i, r in before.items() if now[i] != r})


def drafts_of(opened: Any, words: str, way: str = "LLM drafts") -> Any:
    page = open_rules(opened)
    page.at.text_input(key="rules-text").set_value(words)
    page.run()
    page.choose("rules-part", "Suggest")
    return page.choose("suggest-way", way)


def bench() -> Workbench:
    found: Workbench = resources.open_resources().bench
    return found


def rules() -> dict[str, str | None]:
    return {i: chunk.rule for i, chunk in bench().collection("demo").catalogue().items()}


def told(page: Any) -> str:
    return "\n".join(page.html)


def last_run() -> Any:
    return drafting_run.of("demo", resources.open_resources())


def drafted(page: Any) -> Any:
    """The page once the run has ended, with the labelled questions gathered."""
    last_run().wait(PROCESS_S)
    return page.run().run()


def asked(server: Server) -> list[str]:
    prompts = (call["body"]["messages"][1]["content"] for call in server.asked)
    return [prompt.partition("<chunk>\ntitle: ")[2].partition("\n")[0] for prompt in prompts]


def frame(page: Any) -> Any:
    (found,) = [f.value for f in page.at.dataframe if "would drop" in f.value]
    return found


def test_without_an_llm_the_page_says_what_is_missing(
    open_page: Callable[..., Any], workspace: Path
) -> None:
    page = drafts_of(open_page(workspace=workspace), "dragon")
    assert "Drafting needs an LLM: set OPENAI_API_KEY" in told(page)
    assert "drafts-begin" not in page.buttons


def test_the_cost_is_told_first_and_drafts_are_accepted_as_one_step(
    page: Any, endpoint: Server
) -> None:
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
    sure = [i for i, doubts in enumerate(found["doubts"]) if not doubts]
    assert 0 < len(sure) < n
    assert page.at.button(key="suggest-accept").label.startswith(f"Accept {len(sure)} rule")
    # The same rule on every chunk loses chunks that labelled questions need, so a confirmation is
    # required.
    assert page.at.button(key="suggest-accept").disabled
    page.at.checkbox(key="suggest-sure").check()
    page.run().press("suggest-accept")
    after = rules()
    assert sum(after[i] != before[i] for i in after) == len(sure)
    assert {after[i] for i in after if after[i] != before[i]} == {STORED}
    (step,) = bench().journal.steps("demo", limit=1)
    assert (step.size, step.done) == (len(sure), len(sure))
    assert list(frame(page)["now"]).count("accepted") == len(sure)
    page.press("suggest-edit")
    assert page.at.session_state["rules-part"] == "Chunks"


def test_a_run_is_paused_and_goes_on(page: Any, endpoint: Server) -> None:
    paused = threading.Event()

    def held(handler: Handler, body: dict[str, Any]) -> None:
        if len(endpoint.asked) > 2:
            paused.wait(PROCESS_S)
        says(DRAGON)(handler, body)

    endpoint.behave = held
    n = int(page.at.button(key="drafts-begin").label.split()[1])
    page.press("drafts-begin")
    while len(bench().drafts.drafts("demo")) < 2:
        time.sleep(0.01)
    page.press("drafts-pause")
    paused.set()
    drafted(page)
    first = bench().drafts.drafts("demo")
    left = len(bench().drafts.waiting("demo"))
    assert 2 <= len(first) < n
    assert len(first) + left == n
    assert f"Continue with the {left} chunks left" in page.at.button(key="drafts-go-on").label
    assert "drafts-begin" not in page.buttons
    endpoint.behave = says(DRAGON)
    drafted(page.press("drafts-go-on"))
    every = bench().drafts.drafts("demo")
    assert every[: len(first)] == first
    assert len({draft.chunk_id for draft in every}) == n


def test_a_second_request_waits_and_takes_nothing_from_the_first(
    page: Any, open_page: Callable[..., Any], workspace: Path, endpoint: Server
) -> None:
    going_on = threading.Event()

    def held(handler: Handler, body: dict[str, Any]) -> None:
        going_on.wait(PROCESS_S)
        says(DRAGON)(handler, body)

    endpoint.behave = held
    # Drawn before the first run begins.
    other = drafts_of(open_page(workspace=workspace), "ogre")
    n, m = (int(p.at.button(key="drafts-begin").label.split()[1]) for p in (page, other))
    assert m > 1
    page.press("drafts-begin")
    other.press("drafts-begin")
    # Its figures count chunks that another user may not see.
    assert "drafts-pause" in other.buttons
    other.at.session_state["user"] = User(1)
    assert "Rules are being drafted for another user." in told(other.run())
    assert f" of {n} drafted" not in other.sent
    assert "drafts-pause" not in other.buttons
    going_on.set()
    drafted(page)
    assert (len(bench().drafts.drafts("demo")), len(bench().drafts.waiting("demo"))) == (n, m)
    # More is drafted without those that wait.
    third = drafts_of(open_page(workspace=workspace), "owlbear")
    k = int(third.at.button(key="drafts-begin").label.split()[1])
    drafted(third.press("drafts-begin"))
    assert (len(bench().drafts.drafts("demo")), len(bench().drafts.waiting("demo"))) == (n + k, m)
    drafted(third.press("drafts-go-on"))
    assert (len(bench().drafts.drafts("demo")), len(bench().drafts.waiting("demo"))) == (
        n + k + m,
        0,
    )


def test_after_a_crash_the_page_offers_to_go_on(page: Any, endpoint: Server) -> None:
    """What a killed process leaves behind: the stored drafts, and the queued chunks."""
    book = DraftBook(bench().workspace.database_url)
    ids = [i for i in rules() if "dragon" in i][:3]
    book.want("demo", ids)
    book.close()
    page.run()
    assert page.at.button(key="drafts-go-on").label == "Continue with the 3 chunks left"
    drafted(page.press("drafts-go-on"))
    assert {draft.chunk_id for draft in bench().drafts.drafts("demo")} == set(ids)


def test_an_endpoint_that_refuses_ends_the_run_and_nothing_is_lost(
    page: Any, endpoint: Server
) -> None:
    endpoint.behave = lambda handler, _: handler.reply(401, "{}")
    drafted(page.press("drafts-begin"))
    assert "Drafting stopped." in told(page)
    assert "What was drafted is kept." in told(page)
    assert "No draft was made for the following. Draft again to retry." in told(page)
    endpoint.behave = says(ABSENT)
    drafted(page.press("drafts-begin"))
    found = frame(page)
    assert all("requires what the chunk itself does not contain" in d for d in found["doubts"])
    assert page.at.button(key="suggest-accept").disabled
    used = [line for line in page.html if "Used in this collection so far" in line]
    assert used
    page.press("drafts-forget")
    assert bench().drafts.drafts("demo") == ()
    # What was paid stays paid.
    assert [line for line in page.html if "Used in this collection so far" in line] == used


def test_a_draft_is_compared_with_the_rules_that_are_stored(
    page: Any, open_page: Callable[..., Any], workspace: Path, endpoint: Server
) -> None:
    before = rules()
    # The endpoint repeats the rule of a sibling, which asks for armor class 6.
    endpoint.behave = says(before["attack-matrix-clerics-ac-6"] or "")
    bench().collection("demo").set_rules({"attack-matrix-clerics-ac-7": None})
    page = drafts_of(open_page(workspace=workspace), "attack matrix for clerics armor class 7")
    drafted(page.press("drafts-begin"))
    (doubts,) = frame(page)["doubts"]
    assert "The same rule is on 2 chunks" in doubts


def test_a_chunk_that_the_user_may_not_see_is_neither_sent_nor_told_of(
    open_page: Callable[..., Any], workspace: Path, endpoint: Server
) -> None:
    link = {"profile": "adaptive-gap"}
    page = drafts_of(open_page(link, workspace=workspace), "treasure")
    chunk = bench().collection("demo").chunks([SECRET])[SECRET]
    assert not page.at.session_state["user"].sees(chunk)
    # An operator sees it in the table, but it is still not sent.
    page.at.session_state["operator"] = True
    page.run()
    bench().drafts.want("demo", [SECRET])
    page.run()
    assert "drafts-go-on" not in page.buttons
    if "drafts-begin" in page.buttons:
        drafted(page.press("drafts-begin"))
    assert chunk.title not in asked(endpoint)
    # Nor does it count for somebody who continues what an operator queued.
    page.at.session_state["operator"] = False
    bench().drafts.forget("demo", list(rules()))
    bench().drafts.want("demo", [SECRET, "monster-troll"])
    drafted(page.run().press("drafts-go-on"))
    assert last_run().at[1] == 1
    bench().drafts.forget("demo", list(rules()))


def test_a_category_is_written_tried_on_three_chunks_and_kept(
    open_page: Callable[..., Any], workspace: Path, endpoint: Server
) -> None:
    page = drafts_of(open_page(workspace=workspace), "dragon", "Templates")
    page.at.text_area(key="category-text").set_value("version = ")
    page.run()
    assert "is not valid TOML" in told(page)
    assert page.at.button(key="category-save").disabled
    page.at.text_area(key="category-text").set_value(TEMPLATE)
    page.at.text_input(key="category-name").set_value("../dragon")
    page.run().press("category-save")
    assert "'../dragon' is not a valid category name." in told(page).replace("&#x27;", "'")
    page.at.text_input(key="category-name").set_value("dragon")
    page.run()
    assert page.at.button(key="category-try").label == "Try on 3 chunks"
    page.press("category-try")
    assert len(set(asked(endpoint))) == 3
    assert "The dragon's colour." in endpoint.asked[0]["body"]["messages"][1]["content"]
    rules_tried = [block.value for block in page.at.code]
    assert rules_tried == ['{"contain_one_of":[["dragon","dragons"]]}'] * 3
    page.press("category-save")
    kept = workspace / "templates" / "dragon.toml"
    assert kept.read_text(encoding="utf-8") == TEMPLATE
    # Somebody else saves it meanwhile.
    theirs = TEMPLATE.replace("version = 1", "version = 2")
    kept.write_text(theirs, encoding="utf-8")
    page.at.text_area(key="category-text").set_value(TEMPLATE.replace("version = 1", "version = 3"))
    page.run().press("category-save")
    assert "There is another template 'dragon' already." in told(page).replace("&#x27;", "'")
    assert kept.read_text(encoding="utf-8") == theirs
    page.press("category-replace")
    assert "version = 3" in kept.read_text(encoding="utf-8")
    assert "category-replace" not in page.buttons
    assert "dragon" in [template.category for template in bench().templates()]
    (table,) = [f.value for f in page.at.dataframe if "category" in f.value]
    assert next(iter(table["category"])) == "dragon"
    page.at.selectbox(key="category-chosen").set_value("general")
    page.run()
    assert "Harbour Dues" in page.at.text_area(key="category-text").value
    kept.unlink()
