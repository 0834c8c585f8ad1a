"""Rules tried on pasted questions, and on files of expectations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import MATRIX, choose_part, open_rules, told

from ragfilter.rules.match import RuleBook
from ragfilter.ui.rules import tester
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


def test_the_tester_says_what_was_found_and_what_came_nearest(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose_part(page, "Tester")
    assert "No questions yet." in told(page)
    page.at.text_area(key="tester-text").set_value("cleric vs armor clas 6\nmonk AC 6\n\n")
    page.run()
    assert "2 questions, 123 rules" in told(page)
    # A long log is not read again at every click.
    monkeypatch.setattr(RuleBook, "count_passes", None)
    page.at.selectbox(key="tester-chunk").set_value(MATRIX)
    page.run()
    assert "The chunk is blocked" in told(page)
    assert "nearest to “armor class 6” is “armor clas 6”, 1 letter off" in told(page)
    marked = "".join(each.value for each in page.at.html)
    assert (
        '<mark class="rf-in">cleric</mark> vs <mark class="rf-near">armor clas 6</mark>' in marked
    )
    page.at.selectbox(key="tester-question").set_value(1)
    page.run()
    assert "The chunk passes" in told(page)


def test_the_tester_finds_a_chunk_by_title_or_id(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tester, "MOST_ROWS", 5)
    choose_part(page, "Tester")
    page.at.text_area(key="tester-text").set_value("nothing at all")
    page.run()
    offered = page.at.selectbox(key="tester-chunk").options
    assert len(offered) == 5
    for sought in ("clerics ac-6", "matrix CLERICS Class 6"):
        page.at.text_input(key="tester-find").set_value(sought)
        page.run()
        page.at.selectbox(key="tester-chunk").set_value(MATRIX)
        assert "The chunk is blocked" in told(page.run())
    page.at.text_input(key="tester-find").set_value("no such chunk")
    page.run()
    assert page.at.selectbox(key="tester-chunk").options == []


def test_the_tester_shows_which_rules_pass_which_block_and_which_never_act(page: Any) -> None:
    choose_part(page, "Tester")
    page.at.text_area(key="tester-text").set_value("cleric vs armor class 6\nnothing at all")
    page.run()
    found = {}
    for kind in ("all", "pass", "block", "never act"):
        page.choose("tester-shown", kind)
        (found[kind],) = [f.value for f in page.at.dataframe if "passes" in f.value]
    assert len(found["all"]) == 123
    assert 0 < len(found["pass"]) < 123
    assert (found["pass"]["passes"] > 0).all()
    assert (found["block"]["blocks"] > 0).all()
    assert (found["never act"]["blocks"] == 0).all()
    assert len(found["block"]) + len(found["never act"]) == 123
    # The choice stays when the counts change.
    page.choose("tester-shown", "pass")
    page.at.text_area(key="tester-text").set_value("nothing at all")
    page.run()
    (frame,) = [f.value for f in page.at.dataframe if "passes" in f.value]
    assert page.at.session_state["tester-shown"] == "pass"
    assert len(frame) < len(found["pass"])


def drop_expectations(page: Any, *lines: object) -> Any:
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    page.at.file_uploader(key="tester-expected").set_value(("wanted.jsonl", text, "text/plain"))
    return page.run()


def broken_rows(page: Any) -> list[list[str]]:
    frames = [f.value for f in page.at.dataframe if "expected" in f.value]
    return [list(row) for frame in frames for row in frame.drop(columns="chunk").to_numpy()]


def test_a_file_of_expectations_shows_what_broke(
    open_page: Callable[..., Any], workspace: Path
) -> None:
    page = open_rules(open_page({"clearance.enabled": "false"}, workspace=workspace))
    choose_part(page, "Tester")
    question = "cleric against armor class 6"
    drop_expectations(page, {"question": question, "stay": [MATRIX]})
    assert "1 question, 1 expectation: 0 broken." in told(page)
    assert broken_rows(page) == []
    drop_expectations(
        page,
        {"question": question, "stay": [MATRIX]},
        {"question": "a wizard", "stay": [MATRIX, "nobody"], "go": ["monster-beholder"]},
    )
    assert "2 questions, 4 expectations: 3 broken." in told(page)
    rows = broken_rows(page)
    assert [row[:4] for row in rows] == [
        [2, "a wizard", "must stay", "blocked"],
        [2, "a wizard", "must stay", "no such chunk"],
        [2, "a wizard", "must go", "passed"],
    ]
    assert rows[0][4].startswith("no term of group 1: ")
    assert rows[2][4] == "no rule"


def test_a_file_that_holds_no_expectations_is_refused_with_its_line(page: Any) -> None:
    choose_part(page, "Tester")
    drop_expectations(page, {"question": "a", "stay": [MATRIX]}, {"question": "b", "keep": []})
    said = [text for text in page.html if "wanted.jsonl" in text]
    assert said == [
        "wanted.jsonl, line 2: unknown key 'keep'. "
        'Write {"question": "…", "stay": ["id"], "go": ["id"]}.'
    ]
    assert broken_rows(page) == []


def test_expectations_tell_nothing_of_hidden_chunks(
    open_page: Callable[..., Any], workspace: Path
) -> None:
    page = open_rules(open_page({"clearance.enabled": "true"}, workspace=workspace))
    every = resources.open_resources().bench.collection("demo").catalogue().values()
    secret = next(chunk for chunk in every if chunk.clearance)
    choose_part(page, "Tester")
    drop_expectations(page, {"question": "a", "stay": [MATRIX], "go": [secret.id, "nobody"]})
    assert "1 question, 3 expectations: 3 broken." in told(page)
    _, hidden, absent = broken_rows(page)
    assert hidden == absent
