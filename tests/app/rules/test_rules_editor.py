"""The editor of the Rules page: form and JSON, findings, and what others store meanwhile."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rules_page import open_chunk, rules_frame, told, write

from ragfilter.rules.journal import Journal
from ragfilter.ui.kit.rule_editor import desk

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
    page.choose("rule-view", "Form")
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
    page.choose("rule-view", "JSON")
    assert json.loads(page.at.text_area(key="rule-editor").value) == {
        "contain_one_of": [["a", "ac 6"], ["e"]], "contain_all_of": ["d"],
        "contain_none_of": ["undead"],
    }  # fmt: skip
    write(page, '{"contain_one_of": [["a", "ac 6"], ["e"')
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
