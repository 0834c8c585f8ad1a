"""The editor of the Rules page: form and JSON, findings, and what others store meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rules_page import open_chunk, rules_frame, stored, told, typing, write

from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.ui.kit.rule_editor import desk
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


def test_an_edit_reads_the_chunks_and_their_exports_no_second_time(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_chunk(page, "monster-beholder")
    for place, name in (
        (desk, "make_listing"), (desk, "Catalogue"), (Journal, "edited_since_export"),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, None)
    write(page, '{"contain":"eye"}')
    page.at.text_input(key="rules-text").set_value("monster-beholder")
    found = rules_frame(page.run())
    assert list(found["state"][list(found["id"]).index("monster-beholder")]) == [
        "○ none", "✎ draft",
    ]  # fmt: skip
    page.press("rule-discard")


def chips(page: Any) -> dict[str, list[str]]:
    found = {w.key.partition("--")[0]: list(w.value) for w in page.at.multiselect}
    return {name: terms for name, terms in found.items() if name.startswith("rule-")}


def test_form_and_json_are_always_in_step(page: Any) -> None:
    open_chunk(page, "monster-beholder")
    write(page, '{"contain_one_of":[["a","b"],["c"]],"contain_all_of":["d"]}')
    assert chips(page) == {
        "rule-group-0": ["a", "b"], "rule-group-1": ["c"], "rule-group-2": [],
        "rule-all": ["d"], "rule-none": [],
    }  # fmt: skip
    page.at.multiselect(key="rule-group-0").set_value(["a", "ac 6"])
    page.run()
    page.at.multiselect(key="rule-group-1").set_value([])
    page.run()
    page.at.multiselect(key="rule-group-1").set_value(["e"])
    page.run()
    page.at.multiselect(key="rule-none").set_value(["undead"])
    page.run()
    assert json.loads(page.at.text_area(key="rule-editor").value) == {
        "contain_one_of": [["a", "ac 6"], ["e"]], "contain_all_of": ["d"],
        "contain_none_of": ["undead"],
    }  # fmt: skip
    write(page, '{"contain_one_of": [["a", "ac 6"], ["e"')
    assert "The form shows the rule as soon as the JSON can be read." in told(page)
    assert "line 1" in told(page)
    page.press("rule-save")
    assert "Not saved:" in told(page)
    assert page.at.text_area(key="rule-editor").value == '{"contain_one_of": [["a", "ac 6"], ["e"'
    page.press("rule-discard")
    assert page.at.text_area(key="rule-editor").value == ""


def test_a_finding_is_mended_in_one_click(page: Any) -> None:
    open_chunk(page, "monster-beholder")
    write(page, '{"contain_one_of":[["eye","eye"]]}')
    assert "“eye” appears twice." in told(page)
    page.press("rule-mend-0")
    assert json.loads(page.at.text_area(key="rule-editor").value) == {"contain_one_of": [["eye"]]}
    assert "appears twice" not in told(page)
    page.press("rule-discard")


def test_words_of_nearly_every_question_are_questioned_everywhere(page: Any) -> None:
    bench = resources.open_resources().bench
    store = bench.collection("demo")
    store.set_rules({"the-monk": '{"contain_one_of":[["please","monk"]]}'})
    questions = {str(number): f"Please, number {number}!" for number in range(4000)}
    bench.labels.put_set("demo", "polite", questions)
    page.at.text_input(key="rules-text").set_value("the-monk")
    open_chunk(page, "the-monk")
    assert [list(state) for state in rules_frame(page)["state"]] == [["! warning"]]
    assert "“please” is in nearly every question" in told(page)
    bench.labels.remove_set("demo", "polite")
    store.set_rules({"the-monk": None})


def test_the_second_of_two_sees_the_conflict_and_both_texts(page: Any) -> None:
    open_chunk(page, "monster-beholder")
    write(page, '{"contain":"mine"}')
    bench = resources.open_resources().bench
    store = bench.collection("demo")
    edits.save(store, bench.journal, chunk_id="monster-beholder", rule='{"contain":"theirs"}',
               expected=None, who="test")  # fmt: skip
    page.press("rule-save").press("rule-confirm")
    assert "changed by somebody else" in told(page)
    assert "Stored rule (by test, 20" in told(page)
    assert any('"theirs"' in block.value for block in page.at.code)
    assert page.at.text_area(key="rule-editor").value == '{"contain":"mine"}'
    assert stored("monster-beholder") == '{"contain":"theirs"}'
    page.press("rule-take")
    edits.turn("undo", store, bench.journal, who="test", chunk_id="monster-beholder")


def test_what_is_stored_while_one_types_is_not_overwritten(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_on, typed = typing(monkeypatch), '{"contain_none_of":["mine"]}'
    open_chunk(page, "monster-beholder")
    type_on(page, '{"contain_none_of":["mi')
    bench = resources.open_resources().bench
    store = bench.collection("demo")
    edits.save(store, bench.journal, chunk_id="monster-beholder", rule='{"contain":"theirs"}',
               expected=None, who="test")  # fmt: skip
    type_on(page, typed)
    # Changes from elsewhere do not revert what somebody types.
    assert page.at.text_area(key="rule-editor").value == ""
    write(page, typed).press("rule-save")
    assert "yours is still in the editor" in told(page)
    assert page.at.text_area(key="rule-editor").value == typed
    assert stored("monster-beholder") == '{"contain":"theirs"}'
    page.press("rule-take")
    assert json.loads(page.at.text_area(key="rule-editor").value) == {"contain": "theirs"}
    edits.turn("undo", store, bench.journal, who="test", chunk_id="monster-beholder")
