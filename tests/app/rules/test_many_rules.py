"""Many rules on the Rules page: bulk changes, files, findings and proposals."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from rules_page import MATRIX, choose_part, confirmed, save_bulk, stored, told, turn_latest

from ragfilter.rules.journal import Entry, Journal
from ragfilter.ui import resources
from ragfilter.ui.kit.rule_editor import rule_effect, visible_collection

pytestmark = pytest.mark.model
SPREAD = '{"contain_one_of":[["owl"],["bear"],["claw"]]}'


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
    return page.run()


def test_a_bulk_change_is_previewed_saved_as_one_step_and_undone(page: Any) -> None:
    ids = filtered(page, "owlbear")
    choose_part(page, "Bulk")
    page.at.multiselect(key="bulk-terms").set_value(["owlbear"])
    page.run()
    assert "+   &quot;contain_one_of&quot;" in "".join(e.value for e in page.at.html)
    assert {stored(i) for i in ids} == {None}
    save_bulk(page)
    assert f"Changed {len(ids)} rules." in told(page)
    assert {stored(i) for i in ids} == {'{"contain_one_of":[["owlbear"]]}'}
    assert "Nothing would change." in told(page)

    save_bulk(choose(page, "Add spellings", "Owlbear", ("owl bear", "owlbears")))
    assert {stored(i) for i in ids} == {'{"contain_one_of":[["owlbear","owl bear","owlbears"]]}'}
    # Rules that somebody else has saved in the meantime are not overwritten.
    choose(page, "Replace a term", "owl bear")
    page.at.text_input(key="bulk-new").set_value("owl-bear")
    page.run()
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


def test_a_bulk_change_is_checked_beyond_what_was_searched(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (visible_collection, rule_effect):
        monkeypatch.setattr(module, "MAX_LABELLED", 1)
    page.at.text_input(key="rules-text").set_value("attack-matrix")
    page.run().choose("rules-part", "Bulk").choose("bulk-kind", "Set a rule")
    page.at.text_area(key="bulk-rule").set_value('{"contain":"no such words"}')
    page.run()
    assert "would lose a relevant chunk" in told(page)
    assert page.at.button(key="bulk-save").disabled
    # Only one page of changes is drawn.
    assert len([e for e in page.at.html if 'class="rf-diff"' in e.value]) == 5
    assert page.at.pagination(key="bulk-changes").num_pages > 2
    # No hit of any question would pass.
    page.at.session_state["rules-text"] = ""
    page.run()
    assert "1 question needs a new search" in told(page)
    save_bulk(page)
    page.choose("bulk-kind", "Remove the rule")
    assert "1 of 1 labelled question would change" in told(page)
    assert "new search" not in told(page)


def frame(page: Any) -> Any:
    (found,) = [f.value for f in page.at.dataframe if "finding" in f.value]
    return found


def show(page: Any, words: str, *kinds: str) -> Any:
    page.at.text_input(key="rules-text").set_value(words)
    if kinds:
        page.at.multiselect(key="findings-kinds").set_value(list(kinds))
    return page.run()


def pick(page: Any, row: int) -> Any:
    (table,) = [key for key in page.at.session_state if re.fullmatch(r"findings-\d+", key)]
    page.at.session_state[table] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return page.run()


def test_problems_and_families_are_listed_and_fixed_alone_or_together(page: Any) -> None:
    before = {i: stored(i) for i in ("monster-owlbear", "the-monk")}
    # Only the text says that 10 is an armor class.
    store().set_rules({"monster-owlbear": SPREAD, "the-monk": '{"contain":"ac 10"}'})
    choose_part(page, "Findings")
    show(page, "the-monk")
    assert frame(page)[["kind", "fix"]].to_numpy().tolist() == [["spelling", "certain"]]
    show(page, "monster-owlbear")
    assert frame(page)[["kind", "fix"]].to_numpy().tolist() == [["spread", "check first"]]
    assert "Nothing is certain here." in told(page)
    pick(page, 0).press("finding-edit")
    assert page.session.rules.chunk == "monster-owlbear"
    assert "claw" in page.at.text_area(key="rule-editor").value
    page.press("rule-discard")
    choose_part(page, "Findings")
    page.at.checkbox(key="findings-doubtful").check()
    confirmed(page.run(), "findings-save", "findings-sure")
    assert stored("monster-owlbear") == '{"contain_one_of":[["owl","bear","claw"]]}'
    assert "Changed 1 rule." in told(page)
    assert "No findings." in told(page)
    page.press("rules-undo")
    assert stored("monster-owlbear") == SPREAD
    store().set_rules(before)
    # All chunks of a family have rules, which are replaced only if asked for. They come last.
    show(page, "").press("findings-families")
    listed, family = frame(page), "armor class #"
    first = list(listed["kind"]).index(family)
    assert "#" in listed["kind"][first - 1]
    assert "certain" not in set(listed["fix"][first:])
    assert set(listed[listed["kind"] == family]["fix"]) == {"check first"}
    # The effect of a proposal is shown before it is applied alone.
    chunk_id = "attack-matrix-clerics-ac-8"
    rule = stored(chunk_id)
    show(page, "clerics", family)
    pick(page, list(frame(page)["id"]).index(chunk_id))
    assert "would change" in told(page)
    confirmed(page, "finding-apply", "finding-sure")
    assert stored(chunk_id) != rule
    page.press("rules-undo")
    assert stored(chunk_id) == rule


def give(page: Any, name: str, *lines: dict[str, Any]) -> Any:
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    page.at.file_uploader(key="files-file").set_value((name, text.encode(), "text/plain"))
    return page.run()


def test_files_go_out_and_come_in_with_a_dry_run_first(page: Any) -> None:
    choose_part(page, "Files")
    assert len(page.downloads["demo-rules.jsonl"]().splitlines()) == 123
    assert len(page.downloads["demo-rules.csv"]().splitlines()) == 124
    owlbear = {"id": "monster-owlbear", "query_must": {"contain": "owlbear"}}
    give(page, "drafts.jsonl", owlbear | {"remarks": ["too general"]})
    assert "0 rules to save, 0 unchanged, 1 held back for doubts, 0 refused." in told(page)
    assert "line 1 monster-owlbear: too general" in told(page)
    page.at.checkbox(key="files-doubts").check()
    assert "1 rule to save" in told(page.run())
    give(page, "rules.jsonl", owlbear, {"id": "monster-owlbear-lair", "query_must": {"x": 1}})
    assert "1 rule to save, 0 unchanged, 0 held back for doubts, 1 refused." in told(page)
    assert "line 2 monster-owlbear-lair" in told(page)
    assert stored("monster-owlbear") is None
    confirmed(page, "files-save", "files-sure")
    assert stored("monster-owlbear") == '{"contain":"owlbear"}'
    turn_latest(page, "undo")
    assert stored("monster-owlbear") is None


def enter(journal: Journal, chunk_id: str) -> None:
    entry = Entry(chunk_id, "{}", stored(chunk_id))
    journal.finish(*journal.begin([entry], who="ada", collection="demo"))


def test_only_the_export_of_one_who_sees_everything_counts(
    open_page: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: dict[str, Callable[[], str]] = {}
    draw = st.download_button

    def spy(label: str, data: Any, *args: Any, **options: Any) -> bool:
        offered[options["key"]] = data
        return draw(label, data, *args, **options)

    monkeypatch.setattr(st, "download_button", spy)
    for limited in (True, False):
        params = {} if limited else {"view": "operator"}
        page = open_page(params, workspace=workspace, on="rules")
        journal = resources.open_resources().bench.journal
        enter(journal, MATRIX)
        choose_part(page, "Files")
        # Edits made after the file was generated are not in it.
        enter(journal, "monster-beholder")
        # A click starts no run, which could remove the file before the browser has it.
        assert page.at.download_button(key="files-jsonl").proto.ignore_rerun
        assert MATRIX in map(operator.itemgetter("id"), map(json.loads, offered["files-jsonl"]().splitlines()))
        assert (MATRIX in journal.edited_since_export("demo")) is limited
        assert "monster-beholder" in journal.edited_since_export("demo")
