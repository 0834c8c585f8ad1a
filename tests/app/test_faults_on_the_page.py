"""An endpoint that fails, on the page: reported in words, with a fallback, and the rest of the page
unchanged. The endpoint is a real server on loopback. tests/test_faults.py has every way to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults import FAULTS, LATE, TOLD, Server, deadline, says, servers, well
from waiting import PATIENT_S

from ragfilter.answer.stream import EMPTY
from ragfilter.ui.kit.answer import INSTEAD
from ragfilter.ui.session.answers import NOT_ASKED

pytestmark = pytest.mark.model

LINK = {"profile": "adaptive-gap", "q": "Tell me about owlbears"}
KEPT = ["monster-owlbear", "monster-owlbear-lair", "monster-owl", "monster-giant-owl"]
WORDS_S = 4.0
"""For the first words of an endpoint that then says no more; on a busy machine they get more."""
JUDGED = LINK | {
    "cutoff.enabled": "false", "judge.enabled": "true", "judge.max_chunks": "4",
}  # fmt: skip

SOME_TEXT = ("hangs midway", "never ends", "cuts the stream", "half a JSON")
"""What has come by then stays."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    with servers() as start:
        yield start(well)


@pytest.fixture
def open_failing(
    open_page: Callable[..., Any],
    endpoint: Server,
    monkeypatch: pytest.MonkeyPatch,
    dead_url: str,
) -> Callable[..., Any]:
    """Opens the page with an endpoint that fails in this way. Each has its own model name, so that
    nothing is cached from another."""

    def open_(fault: str, link: dict[str, str], words_s: float = WORDS_S) -> Any:
        endpoint.behave = FAULTS.get(fault, well)
        endpoint.asked.clear()
        url = dead_url if fault == "refuses" else endpoint.url
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_MODEL", f"model {fault}")
        monkeypatch.setenv("RAGFILTER_ANSWER_TIMEOUT_S", str(deadline(fault, words_s)))
        return open_page(link)

    return open_


def told(page: Any) -> str:
    return "\n".join(page.html)


def answers(page: Any) -> str:
    return "\n".join(page.html)


def stands(page: Any) -> bool:
    """Check the rest of the page: headline, curve, table, the layers' controls."""
    return (
        "of 200 retrieved" in page.strip
        and len(page.at.dataframe[0].value) == 200
        and len(page.at.get("plotly_chart")) == 1
        and not page.at.toggle(key="set-cutoff-enabled").disabled
    )


@pytest.mark.parametrize("fault", ["401", "hangs", "never ends", "half a JSON", "refuses"])
def test_an_answer_that_fails(
    open_failing: Callable[..., Any],
    endpoint: Server,
    patiently: Callable[[], None],
    fault: str,
) -> None:
    for words_s in (WORDS_S, PATIENT_S):
        page = open_failing(fault, LINK, words_s)
        assert page.kept == KEPT
        page.press("answer")
        if fault not in SOME_TEXT or "Trolls" in answers(page):
            break
    # Both columns, with extractive answers instead.
    for words in TOLD[fault]:
        assert words in told(page)
    assert told(page).count(INSTEAD) == 2
    assert "[1]" in answers(page)
    assert "owlbear" in answers(page).casefold()
    assert ("Trolls" in answers(page)) is (fault in SOME_TEXT)
    assert (NOT_ASKED in told(page)) is (fault in LATE)
    assert "cite-filtered-1" in page.buttons
    assert page.kept == KEPT
    assert stands(page)
    # A slider still works, and moving it back shows the same without another call.
    calls = len(endpoint.asked)
    page.slide("cutoff.max_results", 2).slide("cutoff.max_results", 5)
    assert TOLD[fault][0] in told(page)
    assert len(endpoint.asked) == calls
    if fault == "refuses":
        return
    endpoint.behave = well
    patiently()
    page.press("answer")
    assert answers(page).count("Trolls fear fire [1].") == 2
    assert INSTEAD not in told(page)


@pytest.mark.parametrize("fault", ["hangs midway", "garbage", "nothing"])
def test_a_judge_that_fails(
    open_failing: Callable[..., Any],
    endpoint: Server,
    patiently: Callable[[], None],
    fault: str,
) -> None:
    limit = {"judge.timeout_ms": str(int(deadline(fault, 1.0) * 1000))}
    page = open_failing(fault, JUDGED | limit)
    before = page.kept
    assert len(before) == 4
    page.press("need-judge")
    assert page.kept == before
    # The judge's own table is next to that of the hits.
    (table,) = (t.value for t in page.at.dataframe if "outcome" in t.value)
    assert [words[0] for words in table["outcome"][:4]] == ["■ fallback"] * 4
    assert all("the judge failed" in reason for reason in table["reason"][:4])
    for words in TOLD[fault]:
        assert words in told(page)
    assert len(table) == 200
    # The unfiltered search is unchanged, and the judge can be asked again.
    page.choose("panel-box", "Prompt").choose("prompt-side", "plain search")
    assert "5 chunks" in told(page)
    assert "need-judge" in page.buttons
    endpoint.behave = says('{"decisions": [{"chunk_id": "monster-owlbear", "action": "KEEP"}]}')
    patiently()
    page.press("need-judge")
    assert page.kept == ["monster-owlbear"]


def test_no_chunks_need_no_llm(open_failing: Callable[..., Any], endpoint: Server) -> None:
    link = {"profile": "adaptive-retrieval", "q": "What is a lightsaber?",
            "quality.score_threshold": "1", "quality.reranker_threshold": "1"}  # fmt: skip
    page = open_failing("500", link)
    assert page.kept == []
    assert EMPTY in answers(page)
    assert endpoint.asked == []
