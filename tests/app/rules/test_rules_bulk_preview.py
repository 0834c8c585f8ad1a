"""The preview of a bulk change, its way through the history, and findings mended by kind."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rules_page import choose_part, leave_out, rules_frame, save_bulk, settled, stored, told

from ragfilter.ui.session import resources

pytestmark = pytest.mark.model


def test_a_bulk_change_is_previewed_saved_as_one_step_and_undone(page: Any) -> None:
    page.at.text_input(key="rules-text").set_value("owlbear")
    page.run()
    ids = list(rules_frame(page)["id"])
    assert len(ids) > 1
    settled(choose_part(page, "Bulk"))
    assert "There is no term." not in told(page)
    page.at.multiselect(key="bulk-terms").set_value(["owlbear", "owlbears"])
    page.run()
    assert "+   &quot;contain_one_of&quot;" in "".join(e.value for e in page.at.html)
    assert all(stored(i) is None for i in ids)
    leave_out(page, ids[:1])
    assert page.at.button(key="bulk-save").label == f"Save {len(ids) - 1} rule" + "s" * (
        len(ids) > 2
    )
    # Another filter begins with every row ticked.
    page.at.session_state["rules-text"] = "owlbear "
    page.run()
    assert page.at.button(key="bulk-save").label == f"Save {len(ids)} rules"
    save_bulk(page)
    assert f"Saved: {len(ids)} rules" in told(page)
    wanted = '{"contain_one_of":[["owlbear","owlbears"]]}'
    assert [stored(i) for i in ids] == [wanted] * len(ids)
    assert "Nothing would change." in told(page)

    choose_part(page, "History")
    (frame,) = [f.value for f in page.at.dataframe if "who" in f.value]
    assert frame["chunk"][0] == f"{len(ids)} rules"
    page.at.session_state["history-open"] = int(frame["edit"][0])
    page.run().press("history-undo")
    assert f"Undone: {len(ids)} rules." in told(page)
    assert [stored(i) for i in ids] == [None] * len(ids)
    page.press("history-redo").press("history-undo")
    assert [stored(i) for i in ids] == [None] * len(ids)
    choose_part(page, "Chunks")
    assert list(rules_frame(page)["id"]) == ids


def test_every_diff_of_a_bulk_change_can_be_looked_at(page: Any) -> None:
    page.at.text_input(key="rules-text").set_value("monster-")
    choose_part(page, "Bulk")
    page.at.multiselect(key="bulk-terms").set_value(["claw"])
    settled(page.run())
    total = int(page.at.button(key="bulk-save").label.split()[1].replace(",", ""))

    def diffs() -> list[str]:
        return [e.value for e in page.at.html if 'class="rf-diff"' in e.value]

    def of_all_pages(key: str) -> list[str]:
        seen = diffs()
        for number in range(2, page.at.pagination(key=key).num_pages + 1):
            page.at.pagination(key=key).set_value(number)
            page.run()
            seen += diffs()
        return seen

    seen = of_all_pages("bulk-changes")
    assert len({*seen}) == len(seen) == total > 40
    # Fewer changes are shown, starting from a page that exists.
    settled(leave_out(page, list(rules_frame(page)["id"])[1:]))
    assert len(diffs()) == 1
    settled(leave_out(page, []))
    save_bulk(page)
    choose_part(page, "History")
    (frame,) = [f.value for f in page.at.dataframe if "who" in f.value]
    page.at.session_state["history-open"] = int(frame["edit"][0])
    page.run()
    assert {*of_all_pages("history-changes")} == {*seen}
    page.press("history-undo")
    if "history-confirm" in page.buttons:
        page.press("history-confirm")
    assert f"Undone: {total} rules." in told(page)


def test_findings_are_listed_and_mended_by_kind(page: Any) -> None:
    store = resources.open_resources().bench.collection("demo")
    spread = '{"contain_one_of":[["owl"],["bear"],["claw"]]}'
    before = stored("monster-owlbear")
    store.set_rules({"monster-owlbear": spread})
    page.at.text_input(key="rules-text").set_value("monster-owlbear")
    settled(choose_part(page, "Findings"))
    (frame,) = [f.value for f in page.at.dataframe if "finding" in f.value]
    assert [list(row) for row in frame[["severity", "kind", "fix"]].to_numpy()] == [
        ["warning", "spread", "if meant so"]
    ]
    assert "Nothing would change." in told(page)
    assert page.at.button(key="findings-edit").disabled
    (table,) = [key for key in page.at.session_state if re.fullmatch(r"findings-\d+", key)]
    page.at.session_state[table] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    page.run().press("findings-edit")
    assert page.at.session_state["rules-open"] == "monster-owlbear"
    settled(choose_part(page, "Findings"))
    page.at.multiselect(key="findings-kinds").set_value(["spread"])
    settled(page.run())
    page.press("bulk-save")
    assert stored("monster-owlbear") == '{"contain_one_of":[["owl","bear","claw"]]}'
    assert "No findings." in told(page)
    store.set_rules({"monster-owlbear": before})


def test_mends_read_the_texts_as_the_editor_does(page: Any) -> None:
    store = resources.open_resources().bench.collection("demo")
    # Only the text says that 10 is an armor class.
    store.set_rules({"the-monk": '{"contain":"ac 10"}'})
    page.at.text_input(key="rules-text").set_value("the-monk")
    settled(choose_part(page, "Findings"))
    (frame,) = [f.value for f in page.at.dataframe if "finding" in f.value]
    assert list(frame["kind"]) == ["spelling"]
    store.set_rules({"the-monk": None})
