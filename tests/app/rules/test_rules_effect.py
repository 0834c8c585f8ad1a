"""What a change of rules would do to questions, shown before it is saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import (
    CLERIC,
    MATRIX,
    choose_part,
    open_chunk,
    open_rules,
    settled,
    stored,
    told,
    write,
)

from ragfilter.errors import InputError
from ragfilter.evaluate import measure, query_sets
from ragfilter.ui.kit.rule_editor import rule_effect
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.session import jobs, resources

pytestmark = pytest.mark.model


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


@pytest.mark.parametrize(("patience_s", "says"), [(60, "loses"), (0, "not gathered yet")])
def test_what_is_not_known_to_lose_nothing_asks_once_more(
    open_page: Callable[..., Any],
    copy_demo: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
    patience_s: float,
    says: str,
) -> None:
    monkeypatch.setattr(rule_effect, "PATIENCE_S", patience_s)
    page = open_rules(open_page(workspace=copy_demo()))
    open_chunk(page, MATRIX)
    write(page, '{"contain":"wizard"}')
    # Collections of other sessions have evicted this one's questions.
    for other in range(jobs.MOST):
        resources.open_resources().jobs.start(None, other, lambda job: None).value()
    page.press("rule-save")
    assert says in told(page).partition("Not saved yet.")[2]
    assert stored(MATRIX) != '{"contain":"wizard"}'
    page.press("rule-confirm")
    assert stored(MATRIX) == '{"contain":"wizard"}'


def test_what_cannot_be_known_asks_once_more(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise InputError("The model is gone.", remedy="Install it.")

    page = open_rules(open_page(workspace=copy_demo()))
    with monkeypatch.context() as patch:
        patch.setattr(measure, "gather_all", fail)
        # New settings, whose questions are not gathered yet.
        page.at.session_state["cutoff.offset"] = 0.31
        open_chunk(page, MATRIX)
        write(page, '{"contain":"wizard"}')
        assert "The model is gone." in told(page)
        page.press("rule-save")
        assert "gathering failed" in told(page).partition("Not saved yet.")[2]
        assert stored(MATRIX) != '{"contain":"wizard"}'
        choose_part(page, "Bulk")
        page.choose("bulk-kind", "Remove the rule")
        assert page.at.button(key="bulk-save").disabled
        page.at.checkbox(key="bulk-sure-unknown").check()
        page.run()
        assert not page.at.button(key="bulk-save").disabled


def test_an_effect_covers_the_questions_asked_if_wanted(page: Any) -> None:
    book = resources.open_resources().bench.labels
    for kept in (False, True):
        book.record_history("demo", kept)
    open_chunk(page, MATRIX)
    write(page, '{"contain":"wizard"}')
    assert "effect-asked" not in {toggle.key for toggle in page.at.toggle}
    book.remember("demo", CLERIC)
    page.run()
    assert "questions would change" in told(page)
    assert "asked would change" not in told(page)
    page.at.toggle(key="effect-asked").set_value(True)
    settled(page.run())
    assert "1 of 1 question asked would change." in told(page)
    page.press("rule-discard")


def test_without_labels_the_questions_asked_show_an_effect(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources.open_resources().bench.labels.remember("demo", CLERIC)
    monkeypatch.setattr(Desk, "labels", None)
    open_chunk(page, MATRIX)
    write(page, '{"contain":"wizard"}')
    assert "Without labelled questions" in told(page)
    assert "asked would change." in told(settled(page.run()))
    page.press("rule-discard")
