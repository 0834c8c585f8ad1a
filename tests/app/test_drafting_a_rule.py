"""The LLM drafts a rule for the open chunk: it fills the editor, is not saved by itself, and loses
no text; if it fails, the page says why. The endpoint is a real server on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import FAULTS, TOLD, Server, says, servers
from rules_page import stored, write
from waiting import PATIENT_S

from ragfilter.stores.chroma import ChromaCollection
from ragfilter.ui.kit.rule_editor.drafting import HIDDEN, NO_LLM, UNSENT

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
LINK = {"profile": "query-must", "q": CLERIC}
MATRIX = "attack-matrix-clerics-ac-7"
SECRET = {"profile": "adaptive-gap", "q": "Which treasure maps are false?"}
NEAREST = "secret-treasure-maps"
GOOD = '{"contain_one_of": [["cleric", "clerics"], ["armor class 7", "ac 7"]]}'
OTHER = '{"contain_one_of": [["druid", "druids"], ["armor class 7", "ac 7"]]}'
MINE = '{"contain": "cleric"}'


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    return copy_demo()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Server]:
    with servers() as start:
        yield start(says(GOOD))


@pytest.fixture
def open_with_llm(
    open_page: Callable[..., Any], workspace: Path, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, str]], Any]:
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_MODEL", "small-model")
    monkeypatch.setenv("RAGFILTER_ANSWER_TIMEOUT_S", str(PATIENT_S))
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "100000")
    monkeypatch.setenv("RAGFILTER_PRICE_COMPLETION", "200000")
    endpoint.asked.clear()
    return lambda link: open_page(link, workspace=workspace)


def editor(page: Any) -> str:
    text: str = page.at.text_area(key="rule-editor").value
    return text


def told(page: Any) -> str:
    """The page's text, without a space between a bold word and a full stop."""
    return re.sub(r" (?=[.:,])", "", "\n".join(page.html))


def test_without_an_llm_the_button_is_disabled_and_says_why(open_page: Callable[..., Any]) -> None:
    page = open_page(LINK).edit_rule(MATRIX)
    button = page.at.button(key="rule-draft")
    assert button.disabled
    assert NO_LLM in button.help
    assert "make local-llm" in button.help
    assert NO_LLM in told(page)


def test_a_draft_fills_the_editor_and_nothing_is_saved_or_lost(
    open_with_llm: Callable[..., Any], endpoint: Server
) -> None:
    page = open_with_llm(LINK).edit_rule(MATRIX)
    before = stored(MATRIX)
    # What was typed is not drafted over.
    write(page, MINE)
    assert page.at.button(key="rule-draft").disabled
    assert "Save or discard" in page.at.button(key="rule-draft").help
    # A fault leaves the text and says why.
    text = editor(page.press("rule-discard"))
    assert endpoint.asked == []
    endpoint.behave = FAULTS["500"]
    page.draft()
    assert [words for words in ("No draft: ", *TOLD["500"]) if words not in told(page)] == []
    assert editor(page) == text
    # The next request may succeed, and a draft is drafted over.
    for rule in (OTHER, GOOD):
        endpoint.asked.clear()
        endpoint.behave = says(rule)
        page.draft()
        assert json.loads(editor(page)) == json.loads(rule)
        assert stored(MATRIX) == before
    assert "Drafted by small-model with the template attack-matrix." in told(page)
    # 7 tokens at 0.1 and 3 at 0.2 each.
    assert "7 + 3 tokens, cost 1.3000 ·" in told(page)
    assert "This question fails the rule" in told(page)
    assert "Once saved: " in told(page)
    (asked,) = endpoint.asked
    sent = asked["body"]["messages"][-1]["content"]
    assert "Opponent Armor Class 7" in sent
    assert "studded leather" in sent
    page.press("rule-save")
    assert json.loads(stored(MATRIX) or "") == json.loads(GOOD)
    assert "Drafted" not in told(page)
    page.press("rule-undo")
    assert stored(MATRIX) == before


def test_what_the_user_may_not_see_is_not_sent_for_an_operator_either(
    open_with_llm: Callable[..., Any], endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_with_llm(SECRET)
    seen = page.ids[:2]
    page.edit_rule(NEAREST)
    assert "rule-draft" not in page.buttons
    page.choose("view-as", "Operator").edit_rule(NEAREST)
    assert page.at.button(key="rule-draft").disabled
    assert HIDDEN in told(page)
    # A seen chunk may become secret or go away between the question and the button.
    whole = ChromaCollection.chunks
    for chunk_id, gone in zip(seen, (True, False), strict=True):
        assert UNSENT not in told(page.edit_rule(chunk_id))

        def changed(self: ChromaCollection, ids: Any, gone: bool = gone) -> Any:
            return {} if gone else {i: replace(chunk, clearance=2) for i, chunk in whole(self, ids).items()}

        with monkeypatch.context() as patch:
            patch.setattr(ChromaCollection, "chunks", changed)
            page.draft()
        assert UNSENT in told(page)
    assert endpoint.asked == []
