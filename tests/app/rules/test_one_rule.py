"""One rule on the Rules page: its editor, effect and history, and concurrent edits by others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from faults import Server, says
from rules_page import CLERIC, MATRIX, choose_part, open_chunk, rules_frame, stored, told, wait_until_told, write

from ragfilter.errors import InputError
from ragfilter.ingest import bundled
from ragfilter.model import PoolResult
from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.ui import resources
from ragfilter.ui.kit.rule_editor import rule_effect, visible_collection
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.rules import listed_rows

pytestmark = pytest.mark.model
WIZARD = '{"contain":"wizard"}'
CHUNK = "monster-beholder"
THEIRS, DRAFT = '{"contain":"theirs"}', '{"contain_one_of":[["eye","beholder"]]}'


def test_an_edit_reads_the_chunks_and_their_exports_no_second_time(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    open_chunk(page, "monster-beholder")
    for place, name in (
        (listed_rows, "make_listing"),
        (visible_collection, "Catalogue"),
        (Journal, "edited_since_export"),
    ):
        monkeypatch.setattr(place, name, None)
    write(page, '{"contain":"eye"}')
    page.at.text_input(key="rules-text").set_value("monster-beholder")
    found = rules_frame(page.run())
    assert list(found["state"][list(found["id"]).index("monster-beholder")]) == ["○ none", "✎ draft"]
    page.press("rule-discard")


def test_form_and_json_are_always_in_step(page: Any) -> None:
    open_chunk(page, "monster-beholder")
    write(page, '{"contain_one_of":[["a","b"],["c"]],"contain_all_of":["d"]}')
    page.choose("rule-view", "Form")
    found = {w.key.partition("--")[0]: w.value for w in page.at.multiselect}
    fields = ("group-0", "group-1", "group-2", "all", "none")
    assert [found[f"rule-{name}"] for name in fields] == [["a", "b"], ["c"], [], ["d"], []]
    changes = (("group-0", ["a", "ac 6"]), ("group-1", []), ("group-1", ["e"]), ("none", ["undead"]))
    for group, terms in changes:
        page.at.multiselect(key=f"rule-{group}").set_value(terms)
        page.run()
    page.choose("rule-view", "JSON")
    assert json.loads(page.at.text_area(key="rule-editor").value) == {
        "contain_one_of": [["a", "ac 6"], ["e"]],
        "contain_all_of": ["d"],
        "contain_none_of": ["undead"],
    }
    write(page, '{"contain_one_of": [["a", "ac 6"], ["e"')
    assert "line 1" in told(page)
    page.press("rule-save")
    assert "Not saved:" in told(page)
    assert page.at.text_area(key="rule-editor").value == '{"contain_one_of": [["a", "ac 6"], ["e"'
    # A finding is mended in one click.
    write(page, '{"contain_one_of":[["eye","eye"]]}')
    assert "“eye” appears twice." in told(page)
    page.press("rule-mend-0")
    assert json.loads(page.at.text_area(key="rule-editor").value) == {"contain_one_of": [["eye"]]}
    assert page.press("rule-discard").at.text_area(key="rule-editor").value == ""


def test_what_was_labelled_in_the_workspace_counts_beside_the_demos_own(
    page: Any, library: Callable[..., PoolResult]
) -> None:
    qrels, questions = bundled.qrels("demo"), bundled.queries("demo")
    asked = [questions[i] for i in list(qrels)[:9]]
    labelled = {i for grades in qrels.values() for i in grades}
    question, lone = next((q, hit.id) for q in asked for hit in library(q).kept if hit.id not in labelled)
    open_chunk(page, lone)
    write(page, '{"contain":"zebra"}')
    assert "loses relevant" not in told(page)
    book = resources.open_resources().bench.labels
    book.add("demo", [(question, lone, 2)], who="curator")
    assert "loses relevant" in told(page.run())
    book.add("demo", [(question, lone, 0)], who="curator")
    assert "loses relevant" not in told(page.run())
    assert "zebra" in page.at.text_area(key="rule-editor").value
    page.press("rule-discard")


def test_the_effect_is_shown_and_harm_asks_once_more_even_if_gathering_failed(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_chunk(page, MATRIX)
    shown = told(page)
    assert "keep this chunk" in shown
    assert "with this rule" in shown
    assert "without a rule" in shown
    write(page, '{"contain":')
    assert "once it can be read" in told(page)
    assert "with this rule" in told(page)

    def fail(*args: Any, **options: Any) -> None:
        raise InputError("The model is gone.", remedy="Install it.")

    write(page, WIZARD)
    assert "would change" in told(page)
    with monkeypatch.context() as patch:
        patch.setattr(rule_effect, "completed_pools", fail)
        # The questions are not gathered yet for the new settings.
        page.session.changes = {"retrieval.pool_size": 190}
        page.run()
        page.press("rule-save")
        assert "Not saved yet." in told(page)
        assert stored(MATRIX) != WIZARD
    page.press("rule-confirm")
    assert stored(MATRIX) == WIZARD


def test_questions_that_were_asked_count_beside_labelled_ones_and_alone(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = resources.open_resources().bench.labels
    for kept in (False, True):
        book.record_history("demo", kept)
    open_chunk(page, MATRIX)
    write(page, WIZARD)
    wait_until_told(page, "of 20 labelled questions would change")
    asked = CLERIC.replace("7th", "8th")
    book.remember("demo", asked)
    wait_until_told(page.run(), "of 20 labelled questions and 1 asked question would change")
    with monkeypatch.context() as patch:
        patch.setattr(VisibleCollection, "labels", None)
        assert "Only labelled questions" in told(page.run())
        wait_until_told(page, "1 of 1 asked question would change.")
    page.press("rule-discard")


def save(rule: str | None) -> None:
    """Save as another session does."""
    bench = resources.open_resources().bench
    edits.save(bench.collection("demo"), bench.journal, chunk_id=CHUNK, rule=rule, expected=stored(CHUNK), who="test")


@pytest.fixture
def drafting(monkeypatch: pytest.MonkeyPatch, endpoint: Server) -> None:
    endpoint.behave = says(DRAFT)
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_MODEL", "small-model")


@pytest.mark.usefixtures("drafting")
def test_neither_template_nor_draft_overwrites_what_was_saved_since(page: Any) -> None:
    open_chunk(page, CHUNK)
    for propose in (lambda: page.press("rule-template"), page.draft):
        save(THEIRS)
        propose()
        assert "theirs" not in page.at.text_area(key="rule-editor").value
        page.press("rule-save")
        if "rule-confirm" in page.buttons:
            page.press("rule-confirm")
        assert "yours is still in the editor" in told(page)
        assert stored(CHUNK) == THEIRS
        page.press("rule-take")
        save(None)
        page.run()
    # Undo takes back the last edit only if the author has seen it.
    save('{"contain":"mine"}')
    page.run()
    save(THEIRS)
    page.press("rules-undo")
    assert "Not undone: " in told(page)
    assert stored(CHUNK) == THEIRS


def test_an_undo_or_redo_in_the_history_asks_once_more_where_labelled_recall_is_lost(page: Any) -> None:
    bench = resources.open_resources().bench
    store, right, wrong = bench.collection("demo"), stored(MATRIX), '{"contain":"wizard"}'
    for rule, expected in ((wrong, right), (right, wrong)):
        edit = edits.save(store, bench.journal, chunk_id=MATRIX, rule=rule, expected=expected, who="test")
    assert edit is not None
    choose_part(page, "History")
    page.session.rules.step = edit.id
    page.run()
    assert "loses relevant" in told(page)
    assert page.at.button(key="history-undo").disabled
    page.at.checkbox(key="history-undo-sure").check()
    page.run().press("history-undo")
    assert "Undone: 1 rule." in told(page)
    assert stored(MATRIX) == wrong
    page.press("history-redo")
    assert "Redone: 1 rule." in told(page)
    page.session.rules.step = edit.id - 1
    assert "have changed since" in told(page.run()).partition("Undo is not possible:")[2]
    assert "history-undo" not in page.buttons
    assert stored(MATRIX) == right
