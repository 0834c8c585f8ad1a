"""Many rules at once on the Rules page: every kind of bulk change, what another session edits in
between, and files and families with doubts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import open_rules, settled, told

from ragfilter.ui.kit.rule_editor import rule_effect
from ragfilter.ui.session import resources
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model

SET = '{"contain_one_of":[["owlbear"]]}'


@pytest.fixture
def page(open_page: Callable[..., Any], copy_demo: Callable[[], Path]) -> Any:
    return open_rules(open_page(workspace=copy_demo()))


def bench() -> Workbench:
    found: Workbench = resources.open_resources().bench
    return found


def save(page: Any) -> Any:
    """Save the bulk change, and confirm if required."""
    if "bulk-sure" in {box.key for box in page.at.checkbox}:
        page.at.checkbox(key="bulk-sure").check()
        page.run()
    return page.press("bulk-save")


def choose(page: Any, kind: str, term: str = "", terms: tuple[str, ...] = ()) -> Any:
    """Choose a kind of bulk change and fill its fields."""
    page.choose("bulk-kind", kind)
    if term:
        page.at.text_input(key="bulk-term").set_value(term)
    if terms:
        page.at.multiselect(key="bulk-terms").set_value(list(terms))
    return settled(page.run())


def test_every_kind_of_bulk_change_is_saved_unless_a_rule_changed_meanwhile(page: Any) -> None:
    page.at.text_input(key="rules-text").set_value("owlbear")
    page.run().choose("rules-part", "Bulk").choose("bulk-kind", "Set a rule")
    store = bench().collection("demo")
    ids = [i for i, chunk in store.entries().items() if "owlbear" in f"{i} {chunk.title}".lower()]

    def rules() -> set[str | None]:
        return set(store.rules(ids).values())

    page.at.text_area(key="bulk-rule").set_value('{"contains": "owlbear"}')
    assert "contains" in told(page.run())
    assert "bulk-save" not in page.buttons
    page.at.text_area(key="bulk-rule").set_value(SET)
    save(settled(page.run()))
    assert f"Saved: {len(ids)} rules, set the rule." in told(page)
    assert rules() == {SET}
    save(choose(page, "Add spellings", "Owlbear", ("owl bear", "owlbears")))
    assert rules() == {'{"contain_one_of":[["owlbear","owl bear","owlbears"]]}'}
    choose(page, "Replace a term", "owl bear")
    page.at.text_input(key="bulk-new").set_value("owl-bear")
    settled(page.run())
    store.set_rules({ids[0]: '{"contain":"theirs"}'})
    page.press("bulk-save")
    assert "Not saved: " in told(page)
    assert "owl-bear" not in "".join(map(str, rules()))
    save(settled(page.run()))
    assert rules() == {
        '{"contain":"theirs"}', '{"contain_one_of":[["owlbear","owl-bear","owlbears"]]}',
    }  # fmt: skip
    save(choose(page, "Remove the rule"))
    assert rules() == {None}


def test_a_bulk_change_is_checked_beyond_what_was_searched(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_effect, "MOST_LABELLED", 1)
    page.at.text_input(key="rules-text").set_value("attack-matrix")
    page.run().choose("rules-part", "Bulk").choose("bulk-kind", "Set a rule")
    page.at.text_area(key="bulk-rule").set_value('{"contain":"no such words"}')
    settled(page.run())
    assert "beyond the first 1 would lose a relevant chunk" in told(page)
    assert page.at.button(key="bulk-save").disabled
    # No hit of any question would pass.
    page.at.session_state["rules-text"] = ""
    settled(page.run())
    assert "1 labelled question needs a new search" in told(page)
    save(page)
    settled(settled(page.choose("bulk-kind", "Remove the rule")))
    assert "1 of 1 labelled question would change" in told(page)
    assert "new search" not in told(page)


def test_files_and_families_are_taken_with_their_doubts(page: Any) -> None:
    settled(page.choose("rules-part", "Files"))
    sheet = b'id,query_must\nmonster-owlbear,"{""contain"": ""owlbear""}"\n'
    page.at.file_uploader(key="files-file").set_value(("rules.csv", sheet, "text/csv"))
    assert "1 rule to save, 0 unchanged" in told(settled(page.run()))
    draft = {"id": "monster-owlbear", "query_must": json.loads(SET), "remarks": ["too general"]}
    text = f"{json.dumps(draft)}\n".encode()
    page.at.file_uploader(key="files-file").set_value(("drafts.jsonl", text, "text/plain"))
    settled(page.run())
    assert "0 rules to save, 0 unchanged, 1 held back for doubts, 0 refused." in told(page)
    assert "line 1 monster-owlbear: too general" in told(page)
    page.at.checkbox(key="files-doubts").check()
    settled(page.run())
    assert "1 rule to save, 0 unchanged, 0 held back for doubts" in told(page)

    settled(page.choose("rules-part", "Suggest"))
    settled(settled(page.press("suggest-find")))
    family = page.at.selectbox(key="suggest-family")
    for place in range(len(family.options)):
        if "suggest-doubts" in {box.key for box in page.at.checkbox}:
            break
        page.at.selectbox(key="suggest-family").select_index(place)
        page.run()
        for box in page.at.checkbox:
            if box.label.startswith("Replace "):
                box.check()
                page.run()
    doubts = page.at.checkbox(key="suggest-doubts")
    count = int(doubts.label.split()[1])
    label = page.at.button(key="suggest-accept").label
    doubts.check()
    after = page.run().at.button(key="suggest-accept").label
    assert int(after.split()[1]) == int(label.split()[1]) + count
