"""Typing a chunk's rule in a real browser: keys, colours, and drafts that survive a reload; also on
the Rules page, where keys open other chunks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
LINK = {"q": CLERIC, "profile": "query-must"}
# No labelled question would lose anything, so no confirmation is needed.
OPEN = '{"contain": "cleric need"}'
SHUT = '{"contain": "wizard"}'
OpenTab = Callable[..., Any]


def open_row(tab: Any, row: int, title: str) -> Any:
    expect(tab.cell(row, "title")).to_have_text(re.compile(title))
    tab.click_row(row)
    expect(tab.chunk.locator("h3")).to_have_text(re.compile(title))
    tab.edit_rule()
    expect(tab.rule).to_have_value(re.compile("contain_one_of"))
    return tab


def test_what_is_typed_is_checked_kept_and_stays_with_its_chunk(open_tab: OpenTab) -> None:
    tab = open_row(open_tab(LINK).expect_kept(15).rest(), 1, r"Armor Class 7\s*$")
    a_rule_is_led_by_keys_coloured_and_checked_while_it_is_typed(tab)
    what_was_typed_survives_a_reload_and_overwrites_nothing(tab)
    tab.visit("Rules")
    # Chunks without a rule.
    tab.keyed("rules-text", "input").fill("monster-were")
    tab.keyed("rules-text", "input").press("Enter")
    expect(tab.page.get_by_text(re.compile("of 572 chunks"))).not_to_contain_text("572 of 572")
    tab.rest().click("rules-next")
    expect(tab.keyed("rules-panel")).to_contain_text("1 of ")
    keys_leave_what_was_typed_with_its_own_chunk(tab, tab.keyed("rules-panel"))
    terms_typed_on_stay_in_their_group_of_the_form(tab)


def a_rule_is_led_by_keys_coloured_and_checked_while_it_is_typed(tab: Any) -> None:
    head, keys = tab.chunk.locator("h3"), tab.page.keyboard
    # Keys open the next chunk, and the focus stays in the editor.
    tab.rule.click()
    for key, title in (("Down", r"Armor Class -7\s*$"), ("Up", r"Armor Class 7\s*$")):
        keys.press(f"Alt+Arrow{key}")
        expect(head).to_have_text(re.compile(title))
        tab.rest()
        expect(tab.rule).to_be_focused()
    # The text is read while the rule is written.
    text = tab.keyed("chunk-text")
    tab.keyed("panel").evaluate("panel => panel.scrollIntoView({block: 'center'})")
    for part in (text, tab.rule, tab.keyed("rule-save", "button")):
        expect(part).to_be_in_viewport(ratio=0.5)
    here, there = text.bounding_box(), tab.rule.bounding_box()
    assert here["x"] + here["width"] <= there["x"]
    # The letters are exactly aligned, even after scrolling.
    before = tab.rule.input_value()
    painted = tab.keyed("rule-editor").locator(".rf-painted")
    same = """() => {
      const area = document.querySelector("[class*='st-key-rule-editor'] textarea")
      const copy = area.nextElementSibling, names = ["scrollTop", "scrollHeight", "clientWidth"]
      area.scrollTop = area.scrollHeight
      return copy.textContent === area.value + "\\n" && area.scrollTop > 0
        && names.every(name => copy[name] === area[name])
    }"""
    tab.page.wait_for_function(same)
    tab.rule.click()
    keys.press("Control+a")
    keys.insert_text('{"contain": "cl\\"eric", "n": [7, nul, "open')
    for kind, words in (
        ("key", ['"contain"', '"n"']),
        ("text", ['"cl\\"eric"']),
        ("value", ["7"]),
        ("bad", ["nul", '"open']),
    ):
        expect(painted.locator(f".rf-json-{kind}")).to_have_text(words)
    tab.expect_verdict("is not valid JSON")
    # Errors that only the server finds are marked in place.
    keys.press("Control+a")
    keys.insert_text('{"contain_one_of": [["cleric"], ["ac 6", 7]]}')
    expect(painted.locator(".rf-json-wrong")).to_have_text(["7"])
    tab.rest()
    for _ in range(10):
        keys.press("Control+z")
    expect(tab.rule).to_have_value(before)
    expect(painted).to_have_text(before)
    # A response during typing does not revert what was typed.
    tab.rule.fill("")
    keys.type('{"contain_one_of":\n  cleric')
    tab.expect_verdict("line 2, column 3")
    for _ in "cleric":
        keys.press("Backspace")
    keys.type('[["cleric", 7]]}', delay=60)
    tab.expect_verdict("Group 1, term 2")
    expect(tab.rule).to_be_focused()
    expect(tab.rule).to_have_value('{"contain_one_of":\n  [["cleric", 7]]}')
    keys.press("Tab")
    tab.rest().click("rule-discard")


def what_was_typed_survives_a_reload_and_overwrites_nothing(tab: Any) -> None:
    earlier = tab.page.get_by_text("Typed before you reopened this page")
    tab.rest().rule.fill(SHUT)
    tab.page.wait_for_function("() => localStorage['ragfilter-drafts']?.includes('wizard')")
    kept = tab.page.evaluate("localStorage['ragfilter-drafts']")

    # Another rule is saved before it comes back, and the rule it started from is known.
    tab.rest().write_rule(OPEN).click("rule-save")
    expect(tab.cell(1, "outcome")).to_have_text("● kept")
    expect(earlier).to_have_count(0)
    tab.rest().page.evaluate("kept => { localStorage['ragfilter-drafts'] = kept }", kept)
    tab.go(LINK | {"open": "evidence"}).click_row(1)
    tab.edit_rule()
    expect(tab.rule).to_have_value(SHUT)
    expect(earlier).to_contain_text("The stored rule has changed since")
    tab.rest().click("rule-save")
    expect(tab.keyed("rule-overwrite", "button")).to_be_visible()
    tab.rest().click("rule-take")
    tab.page.wait_for_function("() => !localStorage['ragfilter-drafts']")
    expect(tab.rule).to_have_value(re.compile('"cleric need"'))
    expect(earlier).to_have_count(0)
    tab.rest().click("rule-undo")
    expect(tab.cell(1, "outcome")).to_have_text("✕ dropped")

    # A tab changes only its own drafts, whatever another tab of this browser stores meanwhile.
    theirs = """["demo", "another", "{", null]"""
    tab.rest().page.evaluate(f"localStorage['ragfilter-drafts'] = JSON.stringify([{theirs}])")
    stored = "JSON.parse(localStorage['ragfilter-drafts'])"
    tab.write_rule(SHUT)
    tab.page.wait_for_function(f"() => {stored}[1]?.[2] === '{SHUT}'")
    tab.page.keyboard.press("Tab")
    tab.rest().click("rule-discard")
    tab.page.wait_for_function(f"() => {stored}.length === 1")
    assert tab.page.evaluate(stored) == [["demo", "another", "{", None]]


def keys_leave_what_was_typed_with_its_own_chunk(tab: Any, panel: Any) -> None:
    head, keys = tab.chunk.locator("h3"), tab.page.keyboard
    first = head.inner_text()
    tab.rest().rule.click()
    typed = '{"contain_none_of": ["typed"]}'
    keys.type(typed)
    keys.press("Alt+ArrowDown")
    expect(panel).to_contain_text("2 of ")
    expect(head).not_to_have_text(first)
    expect(tab.rule).to_have_value("")
    expect(tab.rule).to_be_focused()
    tab.rest()
    keys.press("Alt+ArrowUp")
    expect(head).to_have_text(first)
    expect(tab.rule).to_have_value(typed)
    # The effect next to it is that of the typed text.
    expect(tab.keyed("rule-effect")).to_contain_text("with this rule")
    expect(tab.cell(0, "state")).to_contain_text("✎ draft")
    tab.rest().click("rule-discard")
    expect(tab.rule).to_have_value("")


def terms_typed_on_stay_in_their_group_of_the_form(tab: Any) -> None:
    first, second = (tab.keyed(f"rule-group-{i}", "input") for i in range(2))
    tab.rest().choose("rule-view", "Form").rest()
    first.click()
    tab.type_terms("cleric", "druid").rest()
    assert groups(tab) == [["cleric", "druid"]]
    expect(first).to_be_focused()
    expect(second).to_have_value("")
    second.click()
    tab.type_terms("ac 6").rest()
    assert groups(tab) == [["cleric", "druid"], ["ac 6"]]
    first.click()
    for _ in range(2):
        tab.page.keyboard.press("Backspace")
        tab.rest()
    # The emptied field stays where it is, for the next term.
    assert groups(tab) == [["ac 6"]]
    tab.type_terms("monk").rest()
    assert groups(tab) == [["monk"], ["ac 6"]]


def groups(tab: Any) -> list[list[str]]:
    fields = [tab.keyed(f"rule-group-{i}") for i in range(3)]
    texts = [field.locator("[data-tag]:visible").all_inner_texts() for field in fields]
    return [terms for terms in texts if terms]
