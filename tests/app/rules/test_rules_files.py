"""Rules to and from files on the Rules page."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from rules_page import (
    MATRIX,
    choose_part,
    confirmed,
    open_rules,
    settled,
    stored,
    told,
    turn_latest,
)

from ragfilter.rules.journal import Entry, Journal
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


def give(page: Any, name: str, *lines: dict[str, Any]) -> Any:
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    page.at.file_uploader(key="files-file").set_value((name, text.encode(), "text/plain"))
    return settled(page.run())


def test_files_go_out_and_come_in_with_a_dry_run_first(page: Any) -> None:
    settled(choose_part(page, "Files"))
    assert len(page.downloads["demo-rules.jsonl"]().splitlines()) == 123
    assert len(page.downloads["demo-rules.csv"]().splitlines()) == 124
    owlbear = {"id": "monster-owlbear", "query_must": {"contain": "owlbear"}}
    give(page, "drafts.jsonl", owlbear | {"remarks": ["too general"]})
    assert "0 rules to save, 0 unchanged, 1 held back for doubts, 0 refused." in told(page)
    assert "line 1 monster-owlbear: too general" in told(page)
    page.at.checkbox(key="files-doubts").check()
    assert "1 rule to save" in told(settled(page.run()))
    give(page, "rules.jsonl", owlbear, {"id": "monster-owlbear-lair", "query_must": {"x": 1}})
    assert "1 rule to save, 0 unchanged, 0 held back for doubts, 1 refused." in told(page)
    assert "line 2 monster-owlbear-lair" in told(page)
    page.at.checkbox(key="files-prune").check()
    assert "124 rules to save (123 of them removals" in told(settled(page.run()))
    page.at.checkbox(key="files-prune").uncheck()
    settled(page.run())
    assert stored("monster-owlbear") is None
    confirmed(page, "files-save", "files-sure")
    assert stored("monster-owlbear") == '{"contain":"owlbear"}'
    turn_latest(page, "undo")
    assert stored("monster-owlbear") is None


def enter(journal: Journal, chunk_id: str) -> None:
    entry = Entry(chunk_id, "{}", stored(chunk_id))
    journal.finish(*journal.begin([entry], who="ada", collection="demo"))


def test_only_the_export_of_one_who_sees_everything_counts(
    open_page: Callable[..., Any], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: dict[str, Callable[[], str]] = {}
    draw = st.download_button

    def spy(label: str, data: Any, *args: Any, **options: Any) -> bool:
        offered[options["key"]] = data
        return draw(label, data, *args, **options)

    monkeypatch.setattr(st, "download_button", spy)
    for limited in (True, False):
        params = {} if limited else {"view": "operator"}
        page = open_rules(open_page(params, workspace=workspace))
        journal = resources.open_resources().bench.journal
        enter(journal, MATRIX)
        choose_part(page, "Files")
        # Edits made after the file was generated are not in it.
        enter(journal, "monster-beholder")
        # A click starts no run, which could remove the file before the browser has it.
        assert page.at.download_button(key="files-jsonl").proto.ignore_rerun
        assert MATRIX in map(
            operator.itemgetter("id"), map(json.loads, offered["files-jsonl"]().splitlines())
        )
        assert (MATRIX in journal.edited_since_export("demo")) is limited
        assert "monster-beholder" in journal.edited_since_export("demo")
