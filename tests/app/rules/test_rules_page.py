"""The Rules page: its table and navigation, what a user can see, the matrix and the tester."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rules_page import MATRIX, choose_part, open_chunk, rules_frame, select, stored, told, write

from ragfilter.protocols import Catalogue
from ragfilter.rules.match import CompiledRules
from ragfilter.stores.chroma import ChromaCollection
from ragfilter.ui import resources
from ragfilter.ui.rules import tester

pytestmark = pytest.mark.model


def test_filters_find_chunks_and_only_one_page_is_sent(page: Any) -> None:
    assert len(rules_frame(page)) == 200
    assert "572 of 572 chunks" in told(page)
    assert page.at.pagination(key="rules-page").num_pages == 3
    page.at.text_input(key="rules-text").set_value("matrix clerics armor 6")
    page.run()
    assert MATRIX in set(rules_frame(page)["id"])
    found = rules_frame(page)
    assert all("matrix" in f"{i} {t}".lower() for i, t in zip(found["id"], found["title"], strict=True))
    page.at.multiselect(key="rules-states").set_value(["none"])
    page.run()
    assert "No chunk matches the filter." in told(page)
    assert not [f for f in page.at.dataframe if "rule" in f.value]
    # The address has part, filter and chunk.
    page.at.text_input(key="rules-text").set_value("armor 6")
    page.at.multiselect(key="rules-states").set_value(["valid", "warning"])
    open_chunk(page, MATRIX).choose("rules-part", "Bulk")
    look = {"part": "Bulk", "text": "armor 6", "states": "valid;warning", "chunk": MATRIX}
    assert look.items() <= dict(page.at.query_params).items()
    # A link opens this chunk and filter; states that do not exist are left out.
    page.session.opened = {"text": "owlbear", "states": "none;no such state", "chunk": "the-monk"}
    page.run()
    found = [page.at.session_state[f"rules-{name}"] for name in ("part", "text", "states")]
    assert found == ["Chunks", "owlbear", ["none"]]
    assert page.session.rules.chunk == "the-monk"


def test_next_goes_on_through_the_rows_and_the_order_stays_while_rules_are_saved(page: Any) -> None:
    page.at.multiselect(key="rules-states").set_value(["none"])
    first, second = rules_frame(page.run())["id"][:2]
    page.press("rules-next")
    write(page, '{"contain":"strength"}')
    page.press("rule-save")
    assert "Saved." in told(page)
    assert stored(first) == '{"contain":"strength"}'
    assert list(rules_frame(page)["state"][0]) == ["● valid", "↑ changed"]
    page.press("rules-next")
    assert page.session.rules.chunk == second
    assert "2 of 449" in told(page)
    page.press("rules-previous").press("rules-undo")
    assert stored(first) is None


def test_only_what_a_user_may_see_is_listed(open_page: Any, workspace: Path) -> None:
    page = open_page(workspace=workspace, on="rules")
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


def test_a_new_chunk_enters_the_rules_frame(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # One chunk is replaced in the index.
    *others, last = resources.open_resources().bench.collection("demo").entries().values()
    new = Catalogue({c.id: c for c in (*others, replace(last, id="the-new-chunk"))})
    monkeypatch.setattr(ChromaCollection, "entries", lambda self: new)
    for name in ("content", "version"):
        monkeypatch.setattr(ChromaCollection, name, property(lambda self: "indexed again"))
    order = page.run().session.rules.row_order[1]
    assert "the-new-chunk" in order
    assert last.id not in order


def test_the_matrix_is_shown_and_a_rule_looked_at_by_group_and_term(page: Any) -> None:
    unreadable = "attack-matrix-clerics-ac-8"
    resources.open_resources().bench.collection("demo").set_rules({unreadable: '{"contains":1}'})
    choose_part(page, "Matrix")
    # Nobody can say what the parts of an unreadable rule do.
    assert "contains" in select(page, "matrix", unreadable).errors[0]
    (frame,) = [f.value for f in page.at.dataframe if "adds to F1" in f.value]
    assert "123 rules over" in told(page)
    assert len(frame) == 123
    (crowding,) = [f.value for f in page.at.dataframe if "kept wrongly" in f.value]
    assert crowding["kept wrongly"].is_monotonic_decreasing
    select(page, "matrix", MATRIX)
    frames = [f.value for f in page.at.dataframe if "adds to F1" in f.value]
    words = dict(zip(frames[1]["part"], frames[1]["rule"], strict=True))
    assert words["Group 2, term 1"] == '"armor class 6"'
    assert not [f for f in page.at.dataframe if "question" in f.value]
    select(page, "matrix", "attack-matrix-clerics-ac-2")
    (conflicts,) = [f.value for f in page.at.dataframe if "question" in f.value]
    assert [question.endswith("plate mail and shield?") for question in conflicts["question"]] == [True]
    # The chunks then have the same figures.
    choose_part(page, "Chunks")
    page.at.text_input(key="rules-text").set_value("clerics")
    shown = rules_frame(page.run()).set_index("id")
    assert shown.loc["attack-matrix-clerics-ac-2", "conflicts"] == 1
    assert list(shown)[-3:] == ["precision", "adds to recall", "drops"]


def paste(page: Any, text: str) -> Any:
    page.at.text_area(key="tester-text").set_value(text)
    return page.run()


def test_the_tester_explains_a_rule_for_a_question(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "No questions yet." in told(choose_part(page, "Tester"))
    paste(page, "cleric vs armor clas 6\nmonk AC 6\n\n")
    assert "2 questions, 123 rules" in told(page)
    # A long log is not read again at every click.
    with monkeypatch.context() as patch:
        patch.setattr(CompiledRules, "count_passes", None)
        select(page, "tester", MATRIX)
    assert "The chunk is blocked" in told(page)
    assert "nearest to “armor class 6” is “armor clas 6”, 1 letter off" in told(page)
    marked = "".join(each.value for each in page.at.html)
    assert '<mark class="rf-in">cleric</mark> vs <mark class="rf-near">armor clas 6</mark>' in marked
    page.at.selectbox(key="tester-question").set_value("monk AC 6")
    assert "The chunk passes" in told(page.run())

    with monkeypatch.context() as patch:
        patch.setattr(tester, "MAX_QUESTIONS", 2)
        paste(page, "cleric\nundead cleric\nmonk")
        assert "Only the first 2 are read." in told(page)
    # It counts what rules pass and block.
    paste(page, "cleric vs armor class 6\nnothing at all")
    (frame,) = [f.value for f in page.at.dataframe if "passes" in f.value]
    assert len(frame) == 123
    assert set(frame["passes"] + frame["blocks"]) == {2}
    never, always = (frame["blocks"] == 0).sum(), (frame["passes"] == 0).sum()
    assert 0 < always < 123
    counts = f"blocked by {123 - never - always}, all by {always}, none by {never}."
    assert counts in told(page)
