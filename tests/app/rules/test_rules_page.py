"""The Rules page as a whole: its table, the way through it, and what a user may see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import MATRIX, open_chunk, open_rules, rules_frame, stored, told, write

from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


def test_filters_find_chunks_and_only_one_page_is_sent(page: Any) -> None:
    assert len(rules_frame(page)) == 200
    assert "572 of 572 chunks" in told(page)
    assert page.at.pagination(key="rules-page").num_pages == 3
    page.at.text_input(key="rules-text").set_value("matrix clerics armor 6")
    page.run()
    assert MATRIX in set(rules_frame(page)["id"])
    found = rules_frame(page)
    assert all(
        "matrix" in f"{i} {t}".lower() for i, t in zip(found["id"], found["title"], strict=True)
    )
    page.at.multiselect(key="rules-states").set_value(["none"])
    page.run()
    assert "No chunk matches the filter." in told(page)
    assert not [f for f in page.at.dataframe if "rule" in f.value]


def test_next_goes_on_through_the_rows_and_the_order_stays_while_rules_are_saved(
    page: Any,
) -> None:
    first, second = rules_frame(page)["id"][:2]
    page.press("rules-next")
    write(page, '{"contain":"strength"}')
    page.press("rule-save")
    assert "Saved." in told(page)
    assert stored(first) == '{"contain":"strength"}'
    assert list(rules_frame(page)["state"][0]) == ["● valid", "↑ changed"]
    page.press("rules-next")
    assert page.session.rules.chunk == second
    assert "2 of 572" in told(page)
    page.press("rules-back").press("rules-undo")
    assert stored(first) is None


def test_the_address_has_part_filter_and_chunk(page: Any) -> None:
    page.at.text_input(key="rules-text").set_value("armor 6")
    page.at.multiselect(key="rules-states").set_value(["valid", "warning"])
    open_chunk(page, MATRIX).choose("rules-part", "Bulk")
    look = {"part": "Bulk", "text": "armor 6", "states": "valid;warning", "chunk": MATRIX}
    assert look.items() <= dict(page.at.query_params).items()
    # What a link has open; states that do not exist are left out.
    page.session.opened = {"text": "owlbear", "states": "none;no such state", "chunk": "the-monk"}
    page.run()
    found = [page.at.session_state[f"rules-{name}"] for name in ("part", "text", "states")]
    assert found == ["Chunks", "owlbear", ["none"]]
    assert page.session.rules.chunk == "the-monk"


def test_only_what_a_user_may_see_is_listed(open_page: Callable[..., Any], workspace: Path) -> None:
    page = open_rules(open_page(workspace=workspace))
    every = resources.open_resources().bench.collection("demo").catalogue().values()
    secret = next(chunk for chunk in every if chunk.clearance)
    page.at.text_input(key="rules-text").set_value(secret.id)
    page.run()
    open_chunk(page, secret.id)
    assert secret.title not in page.sent
    assert not [w for w in page.at.text_area if w.key == "rule-editor"]
    page.session.user = type(page.session.user)(9, (secret.department or "",))
    open_chunk(page, secret.id)
    assert secret.title in told(page)
