"""Drafts as a browser returns them: anything else is ignored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragfilter.ui.kit.rule_editor.saving import MAX_CHARS, parse_unsaved


def test_drafts_come_back_with_the_rule_they_began_from() -> None:
    rows = [["demo", "a", '{"contain": "x', None], ["demo", "b", "", '{"contain": "y"}']]
    assert parse_unsaved(json.dumps(rows)) == {
        ("demo", "a"): ('{"contain": "x', None),
        ("demo", "b"): ("", '{"contain": "y"}'),
    }


@pytest.mark.parametrize(
    "sent",
    [
        None,
        5,
        {"a": 1},
        "",
        "{",
        "null",
        "7",
        '{"demo": {}}',
        "[" * 100_000,
        '[5, null, "text", [], ["demo", "a"], ["demo", "a", null, null], ["demo", 5, "x", null]]',
        '[["demo", "a", "x", 5]]',
        json.dumps([["demo", "a", "x" * MAX_CHARS, None]]),
    ],
)
def test_what_is_no_draft_is_left_out(sent: Any) -> None:
    assert parse_unsaved(sent) == {}


def test_half_a_character_is_made_whole() -> None:
    assert parse_unsaved('[["demo", "a", "\\ud800", null]]') == {("demo", "a"): ("\ufffd", None)}
