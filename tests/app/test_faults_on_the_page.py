"""An endpoint that fails, or whose answer could break a page: the page reports it in words and
falls back, and the rest is unchanged. tests/test_faults.py has every way to fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults import FAULTS, TOLD, Behave, Handler, Server, deadline, says, servers, well

from ragfilter.answer.answer import EMPTY
from ragfilter.models.chat import MAX_BYTES
from ragfilter.ui.kit.answer_panel import INSTEAD, MAX_UNKNOWN, SHOWN_CHARS

pytestmark = pytest.mark.model
LINK = {"profile": "adaptive-gap", "q": "Tell me about owlbears"}
KEPT = ["monster-owlbear", "monster-owlbear-lair", "monster-owl", "monster-giant-owl"]
WORDS_S = 2.0
"""Seconds to wait for the first words of a silent endpoint."""
JUDGED = LINK | {"cutoff.enabled": "false", "judge.enabled": "true", "judge.max_chunks": "4"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    with servers() as start:
        yield start(well)


@pytest.fixture
def open_failing(
    open_page: Callable[..., Any], endpoint: Server, monkeypatch: pytest.MonkeyPatch, dead_url: str
) -> Callable[..., Any]:
    """Opens the page with an endpoint that fails in this way. Each has its own model name, so that
    nothing is cached from another."""

    def open_(fault: str, link: dict[str, str]) -> Any:
        endpoint.behave = FAULTS.get(fault, well)
        endpoint.asked.clear()
        url = dead_url if fault == "refuses" else endpoint.url
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_MODEL", f"model {fault}")
        monkeypatch.setenv("RAGFILTER_ANSWER_TIMEOUT_S", str(deadline(fault, WORDS_S)))
        return open_page(link)

    return open_


def told(page: Any) -> str:
    return "\n".join(page.html)


def stands(page: Any) -> bool:
    """Check the rest of the page: headline, curve, table, the layers' controls."""
    return (
        "of 200 retrieved" in page.strip
        and len(page.at.dataframe[0].value) == 200
        and len(page.at.get("plotly_chart")) == 1
        and not page.at.toggle(key="set-cutoff-enabled").disabled
    )


@pytest.mark.parametrize("fault", ["hangs", "half a JSON", "refuses"])
def test_an_answer_that_fails(
    open_failing: Callable[..., Any], endpoint: Server, patiently: Callable[[], None], fault: str
) -> None:
    page = open_failing(fault, LINK)
    assert page.kept == KEPT
    page.press("answer")
    # Both columns, with extractive answers instead.
    for words in TOLD[fault]:
        assert words in told(page)
    assert told(page).count(INSTEAD) == 2
    assert "[1]" in told(page)
    assert "owlbear" in told(page).casefold()
    # The text received so far stays.
    assert ("Trolls" in told(page)) is (fault == "half a JSON")
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
    assert told(page).count("Trolls fear fire [1].") == 2
    assert INSTEAD not in told(page)
    # Whole answers can be asked for again.
    assert "answer" not in page.buttons
    calls = len(endpoint.asked)
    page.press("answer-again")
    assert len(endpoint.asked) == calls + 2


@pytest.mark.parametrize("fault", ["hangs midway", "garbage"])
def test_a_judge_that_fails(
    open_failing: Callable[..., Any], endpoint: Server, patiently: Callable[[], None], fault: str
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
    assert page.at.button(key="need-judge").label.startswith("Ask the LLM again about")
    endpoint.behave = says('{"decisions": [{"chunk_id": "monster-owlbear", "action": "KEEP"}]}')
    patiently()
    page.press("need-judge")
    assert page.kept == ["monster-owlbear"]


def test_no_chunks_need_no_llm(open_failing: Callable[..., Any], endpoint: Server) -> None:
    link = {
        "profile": "adaptive-retrieval",
        "q": "What is a lightsaber?",
        "quality.score_threshold": "1",
        "quality.reranker_threshold": "1",
    }
    page = open_failing("500", link)
    assert page.kept == []
    assert EMPTY in told(page)
    assert endpoint.asked == []


def split(*pieces: str) -> Behave:
    """An endpoint that answers in these pieces."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        for piece in pieces:
            handler.piece(piece)
        handler.piece(None, "stop")

    return behave


@pytest.fixture
def open_with(open_page: Callable[..., Any], endpoint: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Opens the page with an endpoint that answers like this; each `name` has its own answers."""

    def open_(behave: Behave, name: str, link: dict[str, str]) -> Any:
        endpoint.behave = behave
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        monkeypatch.setenv("OPENAI_MODEL", name)
        return open_page(link)

    return open_


def answers(page: Any) -> str:
    return "\n".join(text.value for text in page.at.markdown)


def test_half_an_emoji_in_an_answer_is_shown_to_everybody(open_with: Callable[..., Any]) -> None:
    behave = split("Owls \ud83e", "\udd89 and \ud83e", " fear \udd89")
    page = open_with(behave, "halves", LINK).press("answer")
    assert answers(page).count("Owls 🦉 and \ufffd fear \ufffd") == 2


@pytest.mark.parametrize("thought", ["<think>Bears?", "Bears?"])
def test_a_thought_is_not_shown(open_with: Callable[..., Any], thought: str) -> None:
    model = split(thought, "</th", "ink>", "Owls [1].")
    page = open_with(model, f"thinks {len(thought)}", LINK).press("answer")
    assert answers(page).count("Owls") == 2
    assert "Bears" not in answers(page)


def test_half_an_emoji_in_a_reply_of_the_judge_is_shown(open_with: Callable[..., Any]) -> None:
    behave = split("monster-owlbear -> KEEP \ud83e", "\udd89\nmonster-owl -> KEEP \udd89")
    page = open_with(behave, "judging halves", JUDGED).press("need-judge")
    assert page.kept == ["monster-owlbear", "monster-owl"]
    page.choose("panel-box", "Judge").choose("view-as", "Operator")
    assert any("KEEP 🦉" in code.value and "\ufffd" in code.value for code in page.at.code)


def test_of_an_answer_without_end_the_beginning_is_shown(open_with: Callable[..., Any]) -> None:
    cites = "".join(f"[{n}] " for n in range(1, 2_001))
    behave = split(cites, *("Owls! " * 2_000,) * (MAX_BYTES // 12_000 + 1))
    page = open_with(behave, "endless", LINK).press("answer")
    told = "\n".join(page.html)
    assert told.count("longer than") == 2
    assert told.count(f"The first {SHOWN_CHARS:,} of {MAX_BYTES:,} characters.") == 2
    assert max(len(text.value) for text in page.at.markdown) < 2 * SHOWN_CHARS
    assert told.count("] and ") == 2
    unknown = [line for line in page.html if "not in its prompt" in line]
    assert [line.count("[") for line in unknown] == [MAX_UNKNOWN] * 2
