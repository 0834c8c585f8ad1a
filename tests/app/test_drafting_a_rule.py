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

from ragfilter.rules import edits
from ragfilter.stores.chroma import ChromaCollection
from ragfilter.ui import resources
from ragfilter.ui.kit.rule_editor.drafting import HIDDEN, NO_LLM, UNSENT

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
LINK = {"profile": "query-must", "q": CLERIC}
MATRIX, PLAIN = "attack-matrix-clerics-ac-7", "the-cleric"
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
def page(
    open_page: Callable[..., Any], workspace: Path, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """The page with an LLM, on the matrix for armor class 7; stored edits are reverted."""
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_MODEL", "small-model")
    monkeypatch.setenv("RAGFILTER_ANSWER_TIMEOUT_S", str(PATIENT_S))
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "100000")
    monkeypatch.setenv("RAGFILTER_PRICE_COMPLETION", "200000")
    endpoint.behave = says(GOOD)
    endpoint.asked.clear()
    page = open_page(LINK, workspace=workspace).edit_rule(MATRIX)
    before = stored(MATRIX)
    yield page
    if stored(MATRIX) != before:
        bench = resources.open_resources().bench
        edits.save(
            bench.collection("demo"), bench.journal, chunk_id=MATRIX, rule=before, expected=stored(MATRIX), who="test"
        )


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


def test_a_draft_fills_the_editor_and_nothing_is_saved(page: Any, endpoint: Server) -> None:
    before = stored(MATRIX)
    assert endpoint.asked == []
    page.draft()
    assert json.loads(editor(page)) == json.loads(GOOD)
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


def test_what_was_typed_is_not_drafted_over(page: Any, endpoint: Server) -> None:
    write(page, MINE)
    button = page.at.button(key="rule-draft")
    assert button.disabled
    assert "Save or discard" in button.help
    page.press("rule-discard").draft()
    assert json.loads(editor(page)) == json.loads(GOOD)
    endpoint.behave = says(OTHER)
    page.draft()
    assert json.loads(editor(page)) == json.loads(OTHER)


def test_a_fault_leaves_the_text_and_says_why(page: Any, endpoint: Server) -> None:
    before = editor(page)
    endpoint.behave = FAULTS["500"]
    page.draft()
    for words in ("No draft: ", *TOLD["500"]):
        assert words in told(page)
    assert editor(page) == before
    # The next request may succeed.
    endpoint.behave = says(GOOD)
    page.draft()
    assert json.loads(editor(page)) == json.loads(GOOD)


def test_a_category_of_ones_own_is_a_file(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, endpoint: Server, workspace: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("RAGFILTER_RULE_TEMPLATES", str(tmp_path))
    (tmp_path / "classes.toml").write_text(
        "version = 3\nrecognise.title = ['^the cleric$']\nprompt.holds = 'The class.'\n"
        "example.title = 'The Thief'\nexample.rule = '{\"contain\": \"thief\"}'\n"
    )
    endpoint.behave = says('{"contain": "cleric"}')
    page = open_page(LINK, workspace=workspace).edit_rule(PLAIN).draft()
    assert "with the template classes." in told(page)
    assert json.loads(editor(page)) == {"contain": "cleric"}


def test_what_the_user_may_not_see_is_not_sent_for_an_operator_either(
    page: Any, open_page: Callable[..., Any], endpoint: Server, workspace: Path
) -> None:
    page = open_page(SECRET, workspace=workspace).edit_rule(NEAREST)
    assert "rule-draft" not in page.buttons
    page.choose("view-as", "Operator").edit_rule(NEAREST)
    assert page.at.button(key="rule-draft").disabled
    assert HIDDEN in told(page)
    # A seen chunk's clearance may change between the question and the button.
    page.edit_rule("treasure-types")
    assert not page.at.button(key="rule-draft").disabled
    assert endpoint.asked == []


@pytest.mark.parametrize("gone", [False, True])
def test_a_chunk_that_became_secret_or_went_away_is_not_sent(
    page: Any,
    open_page: Callable[..., Any],
    endpoint: Server,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    gone: bool,
) -> None:
    page = open_page(SECRET, workspace=workspace).edit_rule("treasure-types")
    whole = ChromaCollection.chunks

    def changed(self: ChromaCollection, ids: Any) -> Any:
        there = whole(self, ids).items()
        return {} if gone else {i: replace(chunk, clearance=2) for i, chunk in there}

    with monkeypatch.context() as patch:
        patch.setattr(ChromaCollection, "chunks", changed)
        page.draft()
    assert UNSENT in told(page)
    assert endpoint.asked == []
