"""The history of rules: undo and redo of any change."""

from __future__ import annotations

from typing import Any

import pytest
from rules_page import MATRIX, choose_part, settled, stored, told

from ragfilter.rules import edits
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


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
