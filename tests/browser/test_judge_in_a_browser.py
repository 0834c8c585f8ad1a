"""The LLM judge in a real browser: what it costs, what it said, and how it is stopped."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import FAULTS, Server, servers
from judges import QUERY, RELEVANT, SCHEMAS, capable
from playwright.sync_api import expect
from waiting import PROCESS_S

pytestmark = [pytest.mark.browser, pytest.mark.model]

LINK = {"collection": "adsapi", "profile": "llm-filter", "q": QUERY,
        "judge.timeout_ms": str(int(PROCESS_S * 1000))}  # fmt: skip
OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    """A chat endpoint on loopback; a test sets its `behave`."""
    with servers() as start:
        yield start(capable)


@pytest.fixture(scope="module")
def adsapi_app(
    serve_app: Callable[..., str],
    endpoint: Server,
    adsapi_workspace: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """One server for the whole file, on adsapi, with the endpoint as its LLM."""
    workspace = tmp_path_factory.mktemp("adsapi") / "workspace"
    shutil.copytree(adsapi_workspace, workspace)
    return serve_app(
        RAGFILTER_DATA_DIR=str(workspace),
        OPENAI_BASE_URL=endpoint.url,
        OPENAI_MODEL="judge",
        RAGFILTER_PRICE_PROMPT="0.15",
        RAGFILTER_PRICE_COMPLETION="0.6",
    )


def download(tab: Any, folder: Path) -> list[dict[str, str]]:
    """The table's rows from the CSV."""
    with tab.rest().page.expect_download() as waiting:
        tab.click_in_menu("download-csv")
    path = folder / "chunks.csv"
    waiting.value.save_as(path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def kept(rows: list[dict[str, str]]) -> set[str]:
    return {row["id"] for row in rows if row["place"]}


def headline(tab: Any) -> Any:
    return tab.strip.locator(".rf-fact").first


def test_the_judge_is_stopped_and_asked(
    open_tab: OpenTab, adsapi_app: str, endpoint: Server, tmp_path: Path
) -> None:
    tab = open_tab(LINK | {"judge.enabled": "false"}, url=adsapi_app)
    expect(tab.kept).to_be_visible()
    plain = kept(download(tab, tmp_path))
    assert len(plain) == 25
    tab.rest().switch("judge")
    its_price_is_told_and_no_slider_asks(tab)
    assert endpoint.asked == []
    stop_leaves_an_endpoint_that_hangs(tab, endpoint)
    the_question_of_the_source_document(tab, endpoint, plain, tmp_path)
    # Another session sees the same without a call.
    asked = len(endpoint.asked)
    other = open_tab(LINK, url=adsapi_app)
    expect(headline(other)).to_contain_text("by reference")
    assert len(endpoint.asked) == asked


def move(tab: Any, key: str, wanted: int) -> None:
    """Move the slider of how many chunks are wanted by a key."""
    slider = tab.open("judge").keyed("set-judge-max_chunks").get_by_role("slider")
    slider.focus()
    tab.page.keyboard.press(key)
    expect(slider).to_have_value(str(wanted))


def its_price_is_told_and_no_slider_asks(tab: Any) -> None:
    expect(headline(tab)).to_contain_text("not asked yet")
    button = tab.keyed("need-judge", "button")
    expect(button).to_contain_text(
        re.compile(r"Ask the LLM about 40 chunks · ~2,\d{3} tokens · at most 600 s · cost 0\.000\d")
    )
    move(tab, "ArrowLeft", 24)
    move(tab, "ArrowRight", 25)
    tab.rest().choose("panel-box", "Judge")
    panel = tab.keyed("panel")
    expect(panel).to_contain_text("Not asked yet. 40 chunks wait")
    expect(panel).to_contain_text(
        re.compile(r"40 in the prompt, \d+ shortened to fit 2,000 tokens")
    )


def stop_leaves_an_endpoint_that_hangs(tab: Any, endpoint: Server) -> None:
    endpoint.behave = FAULTS["hangs"]
    tab.rest().click("need-judge")
    expect(tab.keyed("waiting")).to_contain_text("Asking the LLM")
    # A slider moved in the meantime waits with the page, and makes no second call.
    tab.keyed("set-judge-max_chunks").get_by_role("slider").focus()
    tab.page.keyboard.press("ArrowLeft")
    tab.page.wait_for_timeout(1500)
    expect(tab.keyed("waiting")).to_contain_text("Asking the LLM")
    tab.keyed("stop-search", "button").click()
    expect(tab.keyed("waiting")).to_have_count(0)
    expect(headline(tab)).to_contain_text("not asked yet")
    assert len(endpoint.asked) == 1
    move(tab, "ArrowRight", 25)


def the_question_of_the_source_document(
    tab: Any, endpoint: Server, plain: set[str], folder: Path
) -> None:
    """The figures, the verdicts, and what references brought in."""
    endpoint.behave = capable
    asked = len(endpoint.asked)
    tab.rest().click("need-judge")
    expect(headline(tab)).to_contain_text(re.compile(r"kept \d+ of 40 \+ \d+ by reference"))
    assert len(endpoint.asked) == asked + 1
    rows = download(tab, folder)
    judged = kept(rows)
    assert len(judged - RELEVANT) <= len(plain - RELEVANT) / 2
    assert not SCHEMAS & plain
    assert judged >= SCHEMAS
    by_verdict = {row["id"] for row in rows if row["outcome"] == "kept"}
    assert by_verdict
    assert by_verdict <= RELEVANT
    brought = [row for row in rows if row["outcome"] == "expanded"]
    figures = tab.keyed("panel").locator(".rf-grid")
    expect(figures).to_contain_text(re.compile(rf"Kept\s*{len(by_verdict)}\s*Reduction"))
    expect(figures).to_contain_text(
        re.compile(rf"Added by references\s*{len(brought)}\s*Fallback\s*not used")
    )
    expect(figures).to_contain_text(re.compile(r"Tokens in \+ out\s*1,500 \+ \d+\s*Cost\s*0\.0005"))
    cells = tab.keyed("verdicts").locator("td")
    expect(cells.filter(has_text=re.compile(r"^● EXPAND_3$")).first).to_be_attached()
    expect(cells.filter(has_text="└ TokenRequest schema")).to_be_attached()
    expect(cells.filter(has_text=re.compile(r"^2, Get or")).first).to_be_attached()
    tab.keyed("judge-prompt").locator("summary").click()
    expect(tab.keyed("judge-prompt")).to_contain_text(f"Query: {QUERY}")
    # What the LLM answered may name anything, so a user does not see it.
    expect(tab.keyed("judge-prompt")).not_to_contain_text('"decisions"')
