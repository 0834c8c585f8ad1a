"""One change of many rules on the Rules page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import (
    choose_part,
    open_rules,
    save_bulk,
    settled,
    stored,
    told,
)

from ragfilter.ui.kit.rule_editor import desk, rule_effect
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


@pytest.fixture
def page(open_page: Callable[..., Any], copy_demo: Callable[[], Path]) -> Any:
    return open_rules(open_page(workspace=copy_demo()))


def store() -> Any:
    return resources.open_resources().bench.collection("demo")


def filtered(page: Any, words: str) -> list[str]:
    """The chunks that the filter shows, in stored order."""
    page.at.text_input(key="rules-text").set_value(words)
    page.run()
    texts = {i: f"{i} {chunk.title}".lower() for i, chunk in store().entries().items()}
    return [i for i, text in texts.items() if words in text]


def choose(page: Any, kind: str, term: str = "", terms: tuple[str, ...] = ()) -> Any:
    page.choose("bulk-kind", kind)
    if term:
        page.at.text_input(key="bulk-term").set_value(term)
    if terms:
        page.at.multiselect(key="bulk-terms").set_value(list(terms))
    return settled(page.run())


def test_a_bulk_change_is_previewed_saved_as_one_step_and_undone(page: Any) -> None:
    ids = filtered(page, "owlbear")
    settled(choose_part(page, "Bulk"))
    page.at.multiselect(key="bulk-terms").set_value(["owlbear"])
    page.run()
    assert "+   &quot;contain_one_of&quot;" in "".join(e.value for e in page.at.html)
    assert {stored(i) for i in ids} == {None}
    save_bulk(page)
    assert f"Saved: add a group to {len(ids)} rules." in told(page)
    assert {stored(i) for i in ids} == {'{"contain_one_of":[["owlbear"]]}'}
    assert "Nothing would change." in told(page)

    save_bulk(choose(page, "Add spellings", "Owlbear", ("owl bear", "owlbears")))
    assert {stored(i) for i in ids} == {'{"contain_one_of":[["owlbear","owl bear","owlbears"]]}'}
    # Nothing is overwritten that somebody else saved in the meantime.
    choose(page, "Replace a term", "owl bear")
    page.at.text_input(key="bulk-new").set_value("owl-bear")
    settled(page.run())
    before = stored(ids[0])
    store().set_rules({ids[0]: '{"contain":"theirs"}'})
    page.press("bulk-save")
    assert "Not saved: " in told(page)
    assert "owl-bear" not in "".join(str(stored(i)) for i in ids)
    store().set_rules({ids[0]: before})

    page.choose("bulk-kind", "Set a rule")
    # Another change begins with empty fields.
    page.choose("bulk-kind", "Replace a term")
    assert page.at.text_input(key="bulk-term").value == ""
    page.choose("bulk-kind", "Set a rule")
    page.at.text_area(key="bulk-rule").set_value('{"contains": "owlbear"}')
    assert "contains" in told(page.run())
    assert "bulk-save" not in page.buttons
    save_bulk(choose(page, "Remove the rule"))
    assert {stored(i) for i in ids} == {None}

    page.press("rules-undo")
    assert f"Undone: {len(ids)} rules." in told(page)
    assert {stored(i) for i in ids} == {'{"contain_one_of":[["owlbear","owl bear","owlbears"]]}'}
    assert page.at.button(key="bulk-save").label == f"Remove {len(ids)} rules"
    page.press("rules-redo")
    assert {stored(i) for i in ids} == {None}


def test_a_bulk_change_is_checked_beyond_what_was_searched(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (desk, rule_effect):
        monkeypatch.setattr(module, "MAX_LABELLED", 1)
    page.at.text_input(key="rules-text").set_value("attack-matrix")
    page.run().choose("rules-part", "Bulk").choose("bulk-kind", "Set a rule")
    page.at.text_area(key="bulk-rule").set_value('{"contain":"no such words"}')
    settled(page.run())
    assert "would lose a relevant chunk" in told(page)
    assert page.at.button(key="bulk-save").disabled
    # Only one page of changes is drawn.
    assert len([e for e in page.at.html if 'class="rf-diff"' in e.value]) == 5
    assert page.at.pagination(key="bulk-changes").num_pages > 2
    # No hit of any question would pass.
    page.at.session_state["rules-text"] = ""
    settled(page.run())
    assert "1 question needs a new search" in told(page)
    save_bulk(page)
    settled(settled(page.choose("bulk-kind", "Remove the rule")))
    assert "1 of 1 labelled question would change" in told(page)
    assert "new search" not in told(page)
