"""Rules tried on pasted questions."""

from __future__ import annotations

from typing import Any

import pytest
from rules_page import MATRIX, choose_part, told

from ragfilter.rules.match import RuleBook
from ragfilter.ui.rules import tester

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
