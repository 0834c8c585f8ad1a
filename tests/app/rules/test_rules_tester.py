"""Rules tried on pasted questions."""

from __future__ import annotations

from typing import Any

import pytest
from rules_page import MATRIX, choose_part, select, stored, told

from ragfilter.rules.match import RuleBook
from ragfilter.ui.rules import tester
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


def paste(page: Any, text: str) -> Any:
    page.at.text_area(key="tester-text").set_value(text)
    return page.run()


def test_the_tester_explains_a_rule_for_a_question(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "No questions yet." in told(choose_part(page, "Tester"))
    paste(page, "cleric vs armor clas 6\nmonk AC 6\n\n")
    assert "2 questions, 123 rules" in told(page)
    # A long log is not read again at every click.
    with monkeypatch.context() as patch:
        patch.setattr(RuleBook, "count_passes", None)
        select(page, "tester", MATRIX)
    assert "The chunk is blocked" in told(page)
    assert "nearest to “armor class 6” is “armor clas 6”, 1 letter off" in told(page)
    marked = "".join(each.value for each in page.at.html)
    assert (
        '<mark class="rf-in">cleric</mark> vs <mark class="rf-near">armor clas 6</mark>' in marked
    )
    page.at.selectbox(key="tester-question").set_value("monk AC 6")
    assert "The chunk passes" in told(page.run())

    store, before = resources.open_resources().bench.collection("demo"), stored(MATRIX)
    store.set_rules({MATRIX: '{"contain_none_of":["undead"]}'})
    monkeypatch.setattr(tester, "MAX_QUESTIONS", 2)
    paste(page, "cleric\nundead cleric\nmonk")
    assert "Only the first 2 are read." in told(page)
    page.at.selectbox(key="tester-question").set_value("undead cleric")
    select(page, "tester", MATRIX)
    assert "must not contain undead" in told(page)
    assert '<mark class="rf-out">undead</mark>' in "".join(each.value for each in page.at.html)
    store.set_rules({MATRIX: before})


def test_the_tester_counts_what_rules_pass_and_block(page: Any) -> None:
    paste(choose_part(page, "Tester"), "cleric vs armor class 6\nnothing at all")
    (frame,) = [f.value for f in page.at.dataframe if "passes" in f.value]
    assert len(frame) == 123
    assert set(frame["passes"] + frame["blocks"]) == {2}
    never, always = (frame["blocks"] == 0).sum(), (frame["passes"] == 0).sum()
    assert 0 < always < 123
    assert f"{123 - never - always} block some, {always} block all, {never} never act." in told(
        page
    )
