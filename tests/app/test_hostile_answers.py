"""Answers that could break a page are shown without breaking it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults import Behave, Handler, Server, servers, well

from ragfilter.answer.reply import MAX_BYTES
from ragfilter.ui.kit.answer import MAX_UNKNOWN, SHOWN_CHARS

pytestmark = pytest.mark.model

LINK = {"profile": "adaptive-gap", "q": "Tell me about owlbears"}
JUDGED = LINK | {"cutoff.enabled": "false", "judge.enabled": "true", "judge.max_chunks": "4"}


def split(*pieces: str) -> Behave:
    """An endpoint that answers in these pieces."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        for piece in pieces:
            handler.piece(piece)
        handler.piece(None, "stop")

    return behave


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    with servers() as start:
        yield start(well)


@pytest.fixture
def open_with(
    open_page: Callable[..., Any], endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
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
    again = open_with(behave, "halves", LINK)
    assert answers(again).count("Owls 🦉 and \ufffd fear \ufffd") == 2


@pytest.mark.parametrize("thought", ["<think>Bears?", "Bears?"])
def test_a_thought_is_not_shown(open_with: Callable[..., Any], thought: str) -> None:
    model = split(thought, "</th", "ink>", "Owls [1].")
    page = open_with(model, f"thinks {len(thought)}", LINK).press("answer")
    assert answers(page).count("Owls") == 2
    assert "Bears" not in answers(page)


def test_half_an_emoji_in_a_reply_of_the_judge_is_shown(open_with: Callable[..., Any]) -> None:
    behave = split("monster-owlbear -> KEEP \ud83e", "\udd89\nmonster-owl -> KEEP \udd89")
    page = open_with(behave, "judging halves", JUDGED)
    page.press("need-judge")
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
    unknown = [line for line in page.html if "which do not exist" in line]
    assert [line.count("[") for line in unknown] == [MAX_UNKNOWN] * 2
