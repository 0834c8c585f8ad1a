"""Findings and proposals in one table, applied one by one or all at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import choose_part, confirmed, open_rules, settled, stored, told

from ragfilter.ui.session import resources

pytestmark = pytest.mark.model
SPREAD = '{"contain_one_of":[["owl"],["bear"],["claw"]]}'


@pytest.fixture
def page(open_page: Callable[..., Any], copy_demo: Callable[[], Path]) -> Any:
    return open_rules(open_page(workspace=copy_demo()))


def store() -> Any:
    return resources.open_resources().bench.collection("demo")


def frame(page: Any) -> Any:
    (found,) = [f.value for f in page.at.dataframe if "finding" in f.value]
    return found


def show(page: Any, words: str, *kinds: str) -> Any:
    page.at.text_input(key="rules-text").set_value(words)
    if kinds:
        page.at.multiselect(key="findings-kinds").set_value(list(kinds))
    return settled(page.run())


def pick(page: Any, row: int) -> Any:
    (table,) = [key for key in page.at.session_state if re.fullmatch(r"findings-\d+", key)]
    page.at.session_state[table] = {"selection": {"rows": [row], "columns": [], "cells": []}}
    return settled(page.run())


def test_problems_are_listed_and_fixed_alone_or_together(page: Any) -> None:
    # Only the text says that 10 is an armor class.
    store().set_rules({"monster-owlbear": SPREAD, "the-monk": '{"contain":"ac 10"}'})
    settled(choose_part(page, "Findings"))
    show(page, "the-monk")
    assert frame(page)[["kind", "fix"]].to_numpy().tolist() == [["spelling", "certain"]]
    show(page, "monster-owlbear")
    assert frame(page)[["kind", "fix"]].to_numpy().tolist() == [["spread", "check first"]]
    assert "Nothing is certain here." in told(page)
    pick(page, 0).press("finding-edit")
    assert page.session.rules.chunk == "monster-owlbear"
    assert "claw" in page.at.text_area(key="rule-editor").value
    page.press("rule-discard")
    settled(choose_part(page, "Findings"))
    page.at.checkbox(key="findings-doubtful").check()
    confirmed(settled(page.run()), "findings-save", "findings-sure")
    assert stored("monster-owlbear") == '{"contain_one_of":[["owl","bear","claw"]]}'
    assert "Saved: apply 1 rule." in told(page)
    assert "No findings." in told(page)
    page.press("rules-undo")
    assert stored("monster-owlbear") == SPREAD


def test_families_are_proposed_and_those_with_rules_come_last(page: Any) -> None:
    family, bare = "armor class #", [f"attack-matrix-clerics-ac-{n}" for n in (6, 7)]
    settled(choose_part(page, "Findings"))
    settled(settled(page.press("findings-families")))
    # All of its chunks have rules, which are replaced only if asked for.
    listed = frame(page)
    first = list(listed["kind"]).index(family)
    assert "#" in listed["kind"][first - 1]
    assert "certain" not in set(listed["fix"][first:])
    assert set(listed[listed["kind"] == family]["fix"]) == {"check first"}
    store().set_rules(dict.fromkeys(bare))
    show(page, "clerics", family)
    assert page.at.button(key="findings-save").label == "Apply 2 rules"
    confirmed(page, "findings-save", "findings-sure")
    assert all(stored(i) for i in bare)
    # What a proposal would do is shown before it is applied alone.
    before = stored("attack-matrix-clerics-ac-8")
    pick(page, list(frame(page)["id"]).index("attack-matrix-clerics-ac-8"))
    assert "would change" in told(page)
    confirmed(page, "finding-apply", "finding-sure")
    assert stored("attack-matrix-clerics-ac-8") != before
    page.press("rules-undo").press("rules-undo")
    assert stored("attack-matrix-clerics-ac-8") == before
    assert [stored(i) for i in bare] == [None, None]
    page.press("rules-redo")
    assert all(stored(i) for i in bare)
