"""A curator at work on the Rules page: five rules in a row, three actions each, and one undone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str]) -> str:
    return serve_app()


def open_rules(tab: Any) -> Any:
    tab.page.get_by_role("link", name="Rules").click()
    expect(tab.keyed("rules-next", "button")).to_be_visible()
    return tab.rest()


@pytest.mark.parametrize("width", [1440, 900])
def test_five_rules_in_a_row_take_three_actions_each_and_one_is_undone(
    open_tab: OpenTab, width: int
) -> None:
    tab = open_rules(open_tab({"profile": "query-must"}, width=width).rest())
    tab.keyed("rules-text", "input").fill("monster-giant" if width == 1440 else "monster-d")
    tab.keyed("rules-text", "input").press("Enter")
    tab.rest()
    tab.keyed("rules-next", "button").click()
    # The labelled questions are gathered once, behind this.
    expect(tab.keyed("rules-panel")).to_contain_text("1 of ")
    titles = []
    total = 5
    for number in range(1, total + 1):
        expect(tab.keyed("rules-panel")).to_contain_text(f"{number} of ")
        titles.append(tab.chunk.locator("h3").inner_text())
        tab.rule.fill(f'{{"contain_one_of": [["word {number}", "giant", "monster"]]}}')  # 1
        tab.click("rule-save")  # 2
        confirm = tab.keyed("rule-confirm", "button")
        expect(tab.keyed("rules-panel").locator(".rf-good").or_(confirm)).to_be_visible()
        if confirm.is_visible():
            confirm.click()
            expect(tab.keyed("rules-panel").locator(".rf-good")).to_be_visible()
        if number < total:
            tab.rest().click("rules-next")  # 3
    assert len(set(titles)) == total
    tab.rest().click("rule-undo")
    expect(tab.rule).to_have_value("")
    tab.rest().click("rules-back")
    expect(tab.rule).to_have_value(re.compile('"word 4"'))
