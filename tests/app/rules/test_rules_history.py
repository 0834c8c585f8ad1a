"""The history of rules: undo and redo of any change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import MATRIX, choose_part, confirmed, open_rules, settled, stored, told

from ragfilter.rules import edits
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model

CLAW = '{"contain":"claw"}'


def test_an_undo_or_redo_in_the_history_asks_once_more_where_labelled_recall_is_lost(
    page: Any,
) -> None:
    bench = resources.open_resources().bench
    store, right, wrong = bench.collection("demo"), stored(MATRIX), '{"contain":"wizard"}'
    for rule, expected in ((wrong, right), (right, wrong)):
        edit = edits.save(
            store, bench.journal, chunk_id=MATRIX, rule=rule, expected=expected, who="test"
        )
    assert edit is not None
    choose_part(page, "History")
    page.session.rules.step = edit.id
    settled(page.run())
    assert "loses relevant" in told(page)
    assert page.at.button(key="history-undo").disabled
    page.at.checkbox(key="history-undo-sure").check()
    page.run().press("history-undo")
    assert "Undone: 1 rule." in told(page)
    assert stored(MATRIX) == wrong
    page.press("history-redo")
    assert "Redone: 1 rule." in told(page)
    page.session.rules.step = edit.id - 1
    assert "were changed since" in told(page.run()).partition("Undo is not possible:")[2]
    assert "history-undo" not in page.buttons
    assert stored(MATRIX) == right


def test_the_rest_of_a_bulk_change_is_undone_without_what_was_changed_since(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path]
) -> None:
    page = open_rules(open_page(workspace=copy_demo()))
    bench = resources.open_resources().bench
    store, ids = bench.collection("demo"), ("the-cleric", "the-monk", "the-fighter")
    before = {i: stored(i) for i in ids}
    first, *_ = edits.save_all(
        store, bench.journal, rules=dict.fromkeys(ids, CLAW), expected=before, who="test"
    )
    edits.save(
        store, bench.journal, chunk_id=ids[1], rule='{"contain":"mine"}', expected=CLAW, who="test"
    )
    choose_part(page, "History")
    page.session.rules.step = first.id
    settled(page.run())
    assert page.at.button(key="history-undo").label == "Undo the others"
    assert "were changed since" in told(page)
    confirmed(page, "history-undo", "history-undo-sure")
    assert "Undone: 2 rules." in told(page)
    assert {i: stored(i) for i in ids} == before | {ids[1]: '{"contain":"mine"}'}
