"""The rule editor on the page: check, preview, save, undo, redo, draft; typed text is never lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import FAULTS, TOLD, Server, says
from rules_page import stored, told, write
from waiting import PATIENT_S

from ragfilter.rules import edits
from ragfilter.stores.chroma import ChromaCollection
from ragfilter.ui import resources
from ragfilter.ui.kit.rule_editor.llm_drafts import HIDDEN, NO_LLM, UNSENT

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
LINK = {"profile": "query-must", "q": CLERIC}
MATRIX, OTHER = "attack-matrix-clerics-ac-6", "attack-matrix-clerics-ac-7"
PASSES = '{"contain": "cleric"}'
INVALID = '{"contain_one_of": [["a", ""]]}'
FAILS = '{"contain": "wizard"}'
SECRET = {"profile": "adaptive-gap", "q": "Which treasure maps are false?"}
NEAREST = "secret-treasure-maps"
GOOD = '{"contain_one_of": [["cleric", "clerics"], ["armor class 7", "ac 7"]]}'
DRUIDS = '{"contain_one_of": [["druid", "druids"], ["armor class 7", "ac 7"]]}'
TEMPLATE = """
version = 1
recognise.title = ['attack matrix']
prompt.holds = 'The class and the armor.'
example.title = 'Sappers'
example.rule = '{"contain": "sapper"}'
"""


@pytest.fixture
def page(open_page: Any, workspace: Path) -> Iterator[Any]:
    page = open_page(LINK, workspace=workspace).edit_rule(OTHER)
    before = stored(OTHER)
    yield page
    journal = bench().journal
    if stored(OTHER) != before:
        edits.save(bench().collection("demo"), journal, chunk_id=OTHER, rule=before, expected=stored(OTHER), who="test")


def bench() -> Any:
    return resources.open_resources().bench


def through(page: Any, button: str) -> Any:
    """Press a button of the editor, and confirm if required."""
    page.press(button)
    return page.press("rule-confirm") if "rule-confirm" in page.buttons else page


def test_a_damaged_database_spoils_nothing_but_marks_and_the_editor(
    open_page: Any, copy_demo: Callable[[], Path]
) -> None:
    folder = copy_demo()
    (folder / "ragfilter.db").write_bytes(b"no database" * 1000)
    page = open_page(LINK, workspace=folder).edit_rule(OTHER)
    marks, editor = [error.value for error in page.at.error]
    assert "The book of labels failed (file is not a database)" in marks
    assert "The journal of edits failed (file is not a database)" in editor
    assert "move it away" in marks
    assert "move it away" in editor
    assert OTHER in told(page)


def test_the_effect_says_that_other_chunks_move_with_the_cutoff(open_page: Any, workspace: Path) -> None:
    page = open_page(LINK | {"profile": "full"}, workspace=workspace).edit_rule(OTHER)
    # Without an LLM, nothing can be drafted.
    button = page.at.button(key="rule-draft")
    assert button.disabled
    assert NO_LLM in button.help
    assert "make local-llm" in button.help
    assert NO_LLM in told(page)
    write(page, PASSES)
    assert "Other chunks move because the cutoff does" in told(page)


def test_preview_save_undo_redo(page: Any, calls: Counter[str]) -> None:
    before = stored(OTHER)
    calls.clear()
    assert OTHER not in page.kept
    # An invalid rule is not saved, and the place is named.
    write(page, INVALID).press("rule-save")
    assert "Group 1, term 2" in told(page)
    assert stored(OTHER) == before
    assert page.at.text_area(key="rule-editor").value == INVALID
    write(page, PASSES)
    assert "This question passes the rule" in told(page)
    assert "Enters the kept list: I.A. ATTACK MATRIX FOR … Armor Class 7." in told(page)
    assert OTHER not in page.kept
    assert stored(OTHER) == before
    through(page, "rule-save")
    assert OTHER in page.kept
    assert json.loads(stored(OTHER) or "") == {"contain": "cleric"}
    # Text typed since then stays in the editor, and can be saved over the restored rule.
    write(page, FAILS)
    for button, rule in (("rule-undo", before), ("rule-redo", '{"contain":"cleric"}')):
        through(page, button)
        assert "done. The text in the editor is not saved." in told(page)
        assert page.at.text_area(key="rule-editor").value == FAILS
        assert stored(OTHER) == rule
    write(page, "")
    through(page, "rule-save")
    assert stored(OTHER) is None
    assert OTHER in page.kept
    # Saving a rule starts no search: the current question's hits are replayed.
    assert calls["ChromaCollection.nearest"] == 0


def test_a_rule_that_no_question_can_meet_asks_once_more(page: Any) -> None:
    before = stored(OTHER)
    write(page, '{"contain": "druid", "contain_none_of": ["druid"]}').press("rule-save")
    assert "No question can meet this rule" in told(page)
    assert stored(OTHER) == before
    page.press("rule-confirm").press("rule-save")
    assert "Nothing to save." in told(page)
    assert stored(OTHER) != before


def test_losing_what_is_labelled_relevant_asks_once_more_as_on_the_rules_page(page: Any) -> None:
    page.edit_rule(MATRIX)
    before = stored(MATRIX)
    write(page, FAILS)
    page.press("rule-save")
    assert "Not saved yet." in told(page)
    assert "would lose " in told(page)
    assert any("This question fails" in text for text in page.html)
    assert stored(MATRIX) == before
    assert page.at.text_area(key="rule-editor").value == FAILS
    # Typing cancels the confirmation.
    assert "rule-confirm" not in write(page, PASSES).buttons
    write(page, FAILS).press("rule-save")
    page.press("rule-confirm").press("rule-undo")
    assert "Undone." in told(page)
    page.press("rule-redo")
    assert "Not redone yet." in told(page)
    assert stored(MATRIX) == before
    page.press("rule-confirm")
    assert json.loads(stored(MATRIX) or "") == json.loads(FAILS)
    page.press("rule-undo")
    assert stored(MATRIX) == before


def test_what_was_typed_survives_panels_chunks_and_questions(page: Any) -> None:
    write(page, FAILS)
    page.choose("panel-box", "Debug").choose("panel-box", "Chunk")
    assert page.at.text_area(key="rule-editor").value == FAILS
    page.edit_rule(MATRIX)
    assert page.at.text_area(key="rule-editor").value != FAILS
    page.ask("Which fey creatures would we run into in a sylvan setting?").ask(CLERIC)
    page.edit_rule(OTHER)
    assert page.at.text_area(key="rule-editor").value == FAILS
    page.press("rule-discard")
    assert page.at.text_area(key="rule-editor").value != FAILS
    assert "rule-discard" not in page.buttons


def test_the_second_of_two_sees_the_conflict_and_keeps_the_text(page: Any, open_page: Any, workspace: Path) -> None:
    second = open_page(LINK, workspace=workspace).edit_rule(OTHER)
    for theirs, mine, button, after in (
        (PASSES, FAILS, "rule-take", "cleric"),
        ('{"contain": "need"}', FAILS, "rule-overwrite", "wizard"),
    ):
        through(write(page, theirs), "rule-save")
        through(write(second, mine), "rule-save")
        assert "yours is still in the editor" in told(second)
        assert second.at.text_area(key="rule-editor").value == mine
        assert json.loads(second.at.code[0].value) == json.loads(theirs)
        assert json.loads(stored(OTHER) or "") == json.loads(theirs)
        through(second, button)
        assert json.loads(stored(OTHER) or "") == {"contain": after}
        assert "yours is still in the editor" not in told(second)
        assert json.loads(second.at.text_area(key="rule-editor").value) == {"contain": after}
        assert (OTHER in second.kept) is (after == "cleric")


@pytest.fixture
def open_with_llm(
    open_page: Any, workspace: Path, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> Callable[[dict[str, str]], Any]:
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_MODEL", "small-model")
    monkeypatch.setenv("RAGFILTER_ANSWER_TIMEOUT_S", str(PATIENT_S))
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "100000")
    monkeypatch.setenv("RAGFILTER_PRICE_COMPLETION", "200000")
    return lambda link: open_page(link, workspace=workspace)


def said(page: Any) -> str:
    """The page's text, without a space between a bold word and a full stop."""
    return re.sub(r" (?=[.:,])", "", told(page))


def editor(page: Any) -> str:
    text: str = page.at.text_area(key="rule-editor").value
    return text


def test_a_draft_fills_the_editor_and_nothing_is_saved_or_lost(
    open_with_llm: Any, endpoint: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "to-hit.toml").write_text(TEMPLATE, "utf-8")
    monkeypatch.setenv("RAGFILTER_RULE_TEMPLATES", str(tmp_path))
    page = open_with_llm(LINK).edit_rule(OTHER)
    before = stored(OTHER)
    # What was typed is not drafted over.
    write(page, PASSES)
    assert page.at.button(key="rule-draft").disabled
    assert "Save or discard" in page.at.button(key="rule-draft").help
    # A fault leaves the text and says why.
    text = editor(page.press("rule-discard"))
    assert endpoint.asked == []
    endpoint.behave = FAULTS["500"]
    page.draft()
    assert [words for words in ("No draft: ", *TOLD["500"]) if words not in said(page)] == []
    assert editor(page) == text
    # The next request may succeed, and a draft is drafted over.
    for rule in (DRUIDS, GOOD):
        endpoint.asked.clear()
        endpoint.behave = says(rule)
        page.draft()
        assert json.loads(editor(page)) == json.loads(rule)
        assert stored(OTHER) == before
    assert "Drafted by small-model with the template to-hit." in said(page)
    # 7 tokens at 0.1 and 3 at 0.2 each.
    assert "7 + 3 tokens, cost 1.3000 ·" in said(page)
    assert "This question fails the rule" in said(page)
    assert "Once saved: " in said(page)
    (asked,) = endpoint.asked
    sent = asked["body"]["messages"][-1]["content"]
    assert "Opponent Armor Class 7" in sent
    assert "studded leather" in sent
    assert "The class and the armor." in asked["body"]["messages"][0]["content"] + sent
    page.press("rule-save")
    assert json.loads(stored(OTHER) or "") == json.loads(GOOD)
    assert "Drafted" not in said(page)
    page.press("rule-undo")
    assert stored(OTHER) == before


def test_what_the_user_may_not_see_is_not_sent_for_an_operator_either(
    open_with_llm: Any, endpoint: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_with_llm(SECRET)
    seen = page.ids[:2]
    page.edit_rule(NEAREST)
    assert "rule-draft" not in page.buttons
    page.choose("view-as", "Operator").edit_rule(NEAREST)
    assert page.at.button(key="rule-draft").disabled
    assert HIDDEN in said(page)
    # A seen chunk may become secret or go away between the question and the button.
    whole = ChromaCollection.chunks
    for chunk_id, gone in zip(seen, (True, False), strict=True):
        assert UNSENT not in told(page.edit_rule(chunk_id))

        def changed(self: ChromaCollection, ids: Any, gone: bool = gone) -> Any:
            return {} if gone else {i: replace(chunk, clearance=2) for i, chunk in whole(self, ids).items()}

        with monkeypatch.context() as patch:
            patch.setattr(ChromaCollection, "chunks", changed)
            page.draft()
        assert UNSENT in said(page)
    assert endpoint.asked == []
