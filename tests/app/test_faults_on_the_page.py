"""An endpoint that fails, or whose answer could break a page: the page reports it in words and
falls back, and the rest is unchanged. tests/test_faults.py has every way to fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from faults import FAULTS, TOLD, Behave, Handler, Server, deadline, well
from rules_page import told

from ragfilter.models.chat import MAX_BYTES
from ragfilter.ui.kit.answer_panel import INSTEAD, MAX_UNKNOWN, SHOWN_CHARS

pytestmark = pytest.mark.model
LINK = {"profile": "adaptive-gap", "q": "Tell me about owlbears"}
KEPT = ["monster-owlbear", "monster-owlbear-lair", "monster-owl", "monster-giant-owl"]
WORDS_S = 2.0
"""Seconds to wait for the first words of a silent endpoint."""
JUDGED = LINK | {"cutoff.enabled": "false", "judge.enabled": "true", "judge.max_chunks": "4"}


@pytest.fixture
def open_failing(
    open_page: Any, endpoint: Server, monkeypatch: pytest.MonkeyPatch, dead_url: str
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


def split(*pieces: str) -> Behave:
    """An endpoint that answers in these pieces."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        for piece in pieces:
            handler.piece(piece)
        handler.piece(None, "stop")

    return behave


def stands(page: Any) -> bool:
    """Check the rest of the page: headline, curve, table, the layers' controls."""
    return (
        "of 200 retrieved" in page.strip
        and len(page.at.dataframe[0].value) == 200
        and len(page.at.get("plotly_chart")) == 1
        and not page.at.toggle(key="set-cutoff-enabled").disabled
    )


@pytest.mark.parametrize("fault", ["hangs", "half a JSON", "refuses"])
def test_an_answer_that_fails(open_failing: Any, endpoint: Server, patiently: Callable[[], None], fault: str) -> None:
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
def test_a_judge_that_fails(open_failing: Any, endpoint: Server, patiently: Callable[[], None], fault: str) -> None:
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
    # Half an emoji in a reply is shown.
    endpoint.behave = split("monster-owlbear -> KEEP \ud83e", "\udd89\nmonster-owl -> KEEP \udd89")
    patiently()
    page.press("need-judge")
    assert page.kept == ["monster-owlbear", "monster-owl"]
    page.choose("panel-box", "Judge").choose("view-as", "Operator")
    assert any("KEEP 🦉" in code.value and "\ufffd" in code.value for code in page.at.code)


def answers(page: Any) -> str:
    return "\n".join(text.value for text in page.at.markdown)


def test_odd_answers_are_shown(open_failing: Any, endpoint: Server) -> None:
    page = open_failing("", LINK)
    # Half an emoji.
    endpoint.behave = split("Owls \ud83e", "\udd89 and \ud83e", " fear \udd89")
    assert answers(page.press("answer")).count("Owls 🦉 and \ufffd fear \ufffd") == 2
    for thought in ("<think>Bears?", "Bears?"):
        endpoint.behave = split(thought, "</th", "ink>", "Owls [1].")
        page.press("answer-again")
        assert answers(page).count("Owls") == 2
        assert "Bears" not in answers(page)
    # Of an answer without end, the beginning is shown.
    cites = "".join(f"[{n}] " for n in range(1, 2_001))
    endpoint.behave = split(cites, *("Owls! " * 2_000,) * (MAX_BYTES // 12_000 + 1))
    said = told(page.press("answer-again"))
    assert said.count("longer than") == 2
    assert said.count(f"The first {SHOWN_CHARS:,} of {MAX_BYTES:,} characters.") == 2
    assert max(len(text.value) for text in page.at.markdown) < 2 * SHOWN_CHARS
    assert said.count("] and ") == 2
    unknown = [line for line in page.html if "not in its prompt" in line]
    assert [line.count("[") for line in unknown] == [MAX_UNKNOWN] * 2
