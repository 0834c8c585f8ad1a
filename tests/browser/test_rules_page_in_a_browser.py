"""What is typed on the Rules page while the page, keys or somebody else change the rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str], copy_demo: Callable[[], Path]) -> str:
    return serve_app(RAGFILTER_DATA_DIR=str(copy_demo()))


def open_rules(tab: Any) -> Any:
    tab.page.get_by_role("link", name="Rules").click()
    expect(tab.keyed("rules-next", "button")).to_be_visible()
    return tab.rest()


def find(tab: Any, text: str) -> None:
    """Find the chunks with this text and open the first of them."""
    tab.keyed("rules-text", "input").fill(text)
    tab.keyed("rules-text", "input").press("Enter")
    expect(tab.page.get_by_text(re.compile("of 572 chunks"))).not_to_contain_text("572 of 572")
    tab.rest().click("rules-next")
    expect(tab.keyed("rules-panel")).to_contain_text("1 of ")


def test_a_curator_finds_types_and_changes_rules_on_one_page(open_tab: OpenTab) -> None:
    tab = open_tab({"profile": "query-must", "q": CLERIC})
    open_rules(tab)
    # Chunks to which no other test gives rules.
    find(tab, "monster-were")
    keys_leave_what_was_typed_with_its_own_chunk(tab)
    terms_typed_on_stay_in_their_group_of_the_form(tab)
    other = open_rules(open_tab({"profile": "query-must"}).rest())
    for each in (tab, other):
        find(each, "monster-owlbear")
        each.rest()
    what_another_saves_while_one_types_is_not_overwritten(other, tab)


def keys_leave_what_was_typed_with_its_own_chunk(tab: Any) -> None:
    head, panel, keys = tab.chunk.locator("h3"), tab.keyed("rules-panel"), tab.page.keyboard
    first = head.inner_text()
    # At once, and after the page has answered.
    for pause_ms in (0, 1500):
        tab.rest().rule.click()
        typed = f'{{"contain_none_of": ["typed {pause_ms}"]}}'
        keys.type(typed)
        tab.page.wait_for_timeout(pause_ms)
        keys.press("Alt+ArrowDown")
        expect(panel).to_contain_text("2 of ")
        expect(head).not_to_have_text(first)
        expect(tab.rule).to_have_value("")
        expect(tab.rule).to_be_focused()
        tab.rest()
        keys.press("Alt+ArrowUp")
        expect(head).to_have_text(first)
        expect(tab.rule).to_have_value(typed)
        # Its effect is that of what was typed, beside it.
        expect(tab.keyed("rule-effect")).to_contain_text("with this rule")
        expect(tab.cell(0, "state")).to_contain_text("✎ draft")
        tab.rest().click("rule-discard")
        expect(tab.rule).to_have_value("")


def terms_typed_on_stay_in_their_group_of_the_form(tab: Any) -> None:
    first, second = (tab.keyed(f"rule-group-{i}", "input") for i in range(2))
    tab.rest().choose("rule-view", "Form").rest()
    first.click()
    tab.type_terms("cleric", "druid", "monk").rest()
    assert groups(tab) == [["cleric", "druid", "monk"]]
    expect(first).to_be_focused()
    expect(second).to_have_value("")
    # Buttons are in between: one that clears the field, and the help.
    for _ in range(4):
        if not second.evaluate("field => field === document.activeElement"):
            tab.page.keyboard.press("Tab")
            tab.rest()
    expect(second).to_be_focused()
    tab.type_terms("ac 6", "armor class 6").rest()
    assert groups(tab) == [["cleric", "druid", "monk"], ["ac 6", "armor class 6"]]
    first.click()
    for _ in range(3):
        tab.page.keyboard.press("Backspace")
        tab.rest()
    # The emptied field stays where it is, for the next term.
    assert groups(tab) == [["ac 6", "armor class 6"]]
    tab.type_terms("ranger").rest()
    assert groups(tab) == [["ranger"], ["ac 6", "armor class 6"]]
    tab.rest().click("rules-next")
    expect(tab.keyed("rules-panel")).to_contain_text("2 of ")
    tab.rest()
    expect(tab.keyed("rule-form").locator("[data-tag]:visible")).to_have_count(0)
    tab.choose("rule-view", "JSON")


def what_another_saves_while_one_types_is_not_overwritten(first: Any, second: Any) -> None:
    mine, theirs = '{"contain_none_of": ["mine"]}', '{"contain_none_of": ["theirs"]}'
    second.rule.click()
    second.page.keyboard.type(mine[:-4])
    second.expect_verdict("is not valid JSON")
    first.write_rule(theirs).click("rule-save")
    expect(first.keyed("rules-panel").locator(".rf-good")).to_be_visible()

    second.rest().page.keyboard.type(mine[-4:])
    expect(second.rule).to_have_value(mine)
    expect(second.rule).to_be_focused()
    second.rest().click("rule-save")
    expect(second.keyed("rule-overwrite", "button")).to_be_visible()
    expect(second.rule).to_have_value(mine)
    second.rest().click("rule-take")
    expect(second.rule).to_have_value(re.compile('"theirs"'))
    first.rest().click("rules-undo")
    expect(first.rule).to_have_value("")


def groups(tab: Any) -> list[list[str]]:
    fields = [tab.keyed(f"rule-group-{i}") for i in range(3)]
    texts = [field.locator("[data-tag]:visible").all_inner_texts() for field in fields]
    return [terms for terms in texts if terms]
