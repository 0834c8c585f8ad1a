"""What a change of rules would do to questions, shown before it is saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import CLERIC, MATRIX, open_chunk, open_rules, settled, stored, told, write

from ragfilter.errors import InputError
from ragfilter.evaluate import measure, query_sets
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model
WIZARD = '{"contain":"wizard"}'


def test_what_was_labelled_in_the_workspace_counts_beside_the_demos_own(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path]
) -> None:
    page = open_rules(open_page(workspace=copy_demo()))
    bench = resources.open_resources().bench
    labelled = {i for grades in query_sets.load_files("demo", None).qrels.values() for i in grades}
    chunks = bench.collection("demo").catalogue()
    lone = next(c for c in chunks.values() if c.id not in labelled and c.clearance == 0)
    open_chunk(page, lone.id)
    write(page, '{"contain":"zebra"}')
    assert "loses relevant" not in told(page)
    bench.labels.add("demo", [(f"What is said of {lone.title}?", lone.id, 2)], who="curator")
    assert "loses relevant" in told(settled(page.run()))
    bench.labels.add("demo", [(f"What is said of {lone.title}?", lone.id, 0)], who="curator")
    # Immediately, because the question was gathered before.
    assert "loses relevant" not in told(page.run())
    assert "zebra" in page.at.text_area(key="rule-editor").value


def test_the_effect_is_shown_and_harm_asks_once_more_even_if_gathering_failed(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_rules(open_page(workspace=copy_demo()))
    open_chunk(page, MATRIX)
    shown = told(page)
    assert "keep this chunk" in shown
    assert "with this rule" in shown
    assert "without a rule" in shown
    write(page, '{"contain":')
    assert "as soon as it can be read" in told(page)
    assert "with this rule" in told(page)

    def fail(*args: Any, **options: Any) -> None:
        raise InputError("The model is gone.", remedy="Install it.")

    write(page, WIZARD)
    assert "would change" in told(page)
    with monkeypatch.context() as patch:
        patch.setattr(measure, "gather_all", fail)
        # New settings, whose questions are not gathered yet.
        page.session.changes = {"retrieval.pool_size": 190}
        settled(page.run())
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
    assert "of 156 labelled questions would change" in told(page)
    asked = CLERIC.replace("7th", "8th")
    book.remember("demo", asked)
    assert "of 156 labelled questions and 1 asked would change" in told(settled(page.run()))
    with monkeypatch.context() as patch:
        patch.setattr(Desk, "labels", None)
        settled(page.run())
        assert "Without labelled questions" in told(page)
        assert "1 of 1 asked would change." in told(page)
    page.press("rule-discard")
