"""The Rules page: the table of all chunks, the editor next to it, the effect of a change."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from rules_page import open_rules, settled, typing

from ragfilter.errors import InputError
from ragfilter.evaluate import labels, run
from ragfilter.model import Chunk
from ragfilter.rules import edits, steps
from ragfilter.rules.journal import Journal
from ragfilter.rules.match import RuleBook
from ragfilter.rules.overview import Checks, Filter
from ragfilter.ui.rules import desk, effect, families, labelled, tester
from ragfilter.ui.rules.offers import Offer
from ragfilter.ui.session import background, resources

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
MATRIX = "attack-matrix-clerics-ac-6"
CLAW = '{"contain":"claw"}'
HALF = '{"contain_one_of":[["cleric"],["armor class 6"]]}'


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    """One copy for this file; tests revert their edits or edit chunks of their own."""
    return copy_demo()


@pytest.fixture
def page(open_page: Callable[..., Any], workspace: Path) -> Any:
    return open_rules(open_page(workspace=workspace))


def rules_frame(page: Any) -> Any:
    """The table of the chunks, or under Bulk of those that would change."""
    (frame,) = [f.value for f in page.at.dataframe if "rule" in f.value]
    return frame


def open_chunk(page: Any, chunk_id: str) -> Any:
    page.at.session_state["rules-open"] = chunk_id
    return settled(page.run())


def write(page: Any, text: str) -> Any:
    page.at.text_area(key="rule-editor").set_value(text)
    return page.run()


def told(page: Any) -> str:
    return "\n".join(page.html)


def stored(chunk_id: str) -> str | None:
    rule: str | None = resources.open_resources().bench.collection("demo").rule(chunk_id)
    return rule


def chips(page: Any) -> dict[str, list[str]]:
    return {w.key: list(w.value) for w in page.at.multiselect if w.key.startswith("rule-")}


def test_filters_find_chunks_and_only_one_page_is_sent(page: Any) -> None:
    assert len(rules_frame(page)) == 50
    assert "572 of 572 chunks" in told(page)
    assert page.at.pagination(key="rules-page").num_pages == 12
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
    assert page.at.session_state["rules-open"] == second
    assert "2 of 572" in told(page)
    page.press("rules-back").press("rule-undo")
    assert stored(first) is None


def test_an_edit_reads_the_chunks_and_their_exports_no_second_time(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_chunk(page, "monster-beholder")
    for place, name in (
        (desk, "make_listing"), (desk, "Catalogue"), (Checks, "missing"),
        (Journal, "edited_since_export"),
    ):  # fmt: skip
        monkeypatch.setattr(place, name, None)
    write(page, '{"contain":"eye"}')
    page.at.text_input(key="rules-text").set_value("monster-beholder")
    found = rules_frame(page.run())
    assert list(found["state"][list(found["id"]).index("monster-beholder")]) == [
        "○ none", "✎ draft",
    ]  # fmt: skip
    page.press("rule-discard")


def test_form_and_json_are_always_in_step(page: Any) -> None:
    open_chunk(page, "monster-beholder")
    write(page, '{"contain_one_of":[["a","b"],["c"]],"contain_all_of":["d"]}')
    assert chips(page) == {
        "rule-group-0": ["a", "b"], "rule-group-1": ["c"], "rule-group-2": [],
        "rule-all": ["d"], "rule-none": [],
    }  # fmt: skip
    page.at.multiselect(key="rule-group-0").set_value(["a", "ac 6"])
    page.run()
    page.at.multiselect(key="rule-group-1").set_value([])
    page.run()
    page.at.multiselect(key="rule-group-1").set_value(["e"])
    page.run()
    page.at.multiselect(key="rule-none").set_value(["undead"])
    page.run()
    assert json.loads(page.at.text_area(key="rule-editor").value) == {
        "contain_one_of": [["a", "ac 6"], ["e"]], "contain_all_of": ["d"],
        "contain_none_of": ["undead"],
    }  # fmt: skip
    write(page, '{"contain_one_of": [["a", "ac 6"], ["e"')
    assert "The form shows the rule as soon as the JSON can be read." in told(page)
    assert "line 1" in told(page)
    page.press("rule-save")
    assert "Not saved:" in told(page)
    assert page.at.text_area(key="rule-editor").value == '{"contain_one_of": [["a", "ac 6"], ["e"'
    page.press("rule-discard")
    assert page.at.text_area(key="rule-editor").value == ""


def test_a_finding_is_mended_in_one_click(page: Any) -> None:
    open_chunk(page, "monster-beholder")
    write(page, '{"contain_one_of":[["eye","eye"]]}')
    assert "“eye” appears twice." in told(page)
    page.press("rule-mend-0")
    assert json.loads(page.at.text_area(key="rule-editor").value) == {"contain_one_of": [["eye"]]}
    assert "appears twice" not in told(page)
    page.press("rule-discard")


def test_alternatives_in_three_groups_are_merged_in_one_click(page: Any) -> None:
    open_chunk(page, MATRIX)
    write(page, '{"contain_one_of": [["cleric"], ["druid"], ["monk"], ["ac 6"]]}')
    assert "a question must mention “cleric”, “druid” and “monk”" in told(page)
    page.press("rule-mend-0")
    assert json.loads(page.at.text_area(key="rule-editor").value) == {
        "contain_one_of": [["cleric", "druid", "monk"], ["ac 6"]]
    }
    assert "a question must mention" not in told(page)
    page.press("rule-discard")


def test_losing_what_is_labelled_relevant_asks_once_more(page: Any) -> None:
    open_chunk(page, MATRIX)
    before = stored(MATRIX)
    write(page, '{"contain":"wizard"}')
    assert "labelled questions would change" in told(page)
    assert "loses relevant" in told(page)
    # In red.
    assert any('class="rf-lost"' in each.value for each in page.at.html)
    page.press("rule-save")
    assert "Not saved yet." in told(page)
    assert stored(MATRIX) == before
    assert page.at.text_area(key="rule-editor").value == '{"contain":"wizard"}'
    page.press("rule-confirm")
    assert stored(MATRIX) == '{"contain":"wizard"}'
    page.press("rule-undo")
    assert stored(MATRIX) == before


def test_what_was_labelled_in_the_workspace_counts_beside_the_demos_own(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path]
) -> None:
    page = open_rules(open_page(workspace=copy_demo()))
    bench = resources.open_resources().bench
    labelled = {i for grades in labels.load("demo", None).qrels.values() for i in grades}
    chunks = bench.collection("demo").catalogue()
    lone = next(c for c in chunks.values() if c.id not in labelled and c.clearance == 0)
    open_chunk(page, lone.id)
    write(page, '{"contain":"zebra"}')
    assert "loses relevant" not in told(page)
    bench.labels.add("demo", [(f"What is said of {lone.title}?", lone.id, 2)], who="curator")
    assert "loses relevant" in told(settled(page.run()))
    bench.labels.add("demo", [(f"What is said of {lone.title}?", lone.id, 0)], who="curator")
    # Immediately, because the question was gathered before.
    assert "loses relevant" not in told(page.run())
    assert "zebra" in page.at.text_area(key="rule-editor").value


@pytest.mark.parametrize(("patience_s", "says"), [(60, "loses"), (0, "were still being gathered")])
def test_what_is_not_known_to_lose_nothing_asks_once_more(
    open_page: Callable[..., Any],
    copy_demo: Callable[[], Path],
    monkeypatch: pytest.MonkeyPatch,
    patience_s: float,
    says: str,
) -> None:
    monkeypatch.setattr(effect, "PATIENCE_S", patience_s)
    page = open_rules(open_page(workspace=copy_demo()))
    open_chunk(page, MATRIX)
    write(page, '{"contain":"wizard"}')
    # Collections of other sessions have evicted this one's questions.
    shelf = resources.open_resources().labelled
    for other in range(4):
        shelf.put(other, background.start(lambda job: None))
    page.press("rule-save")
    assert says in told(page).partition("Not saved yet.")[2]
    assert stored(MATRIX) != '{"contain":"wizard"}'
    page.press("rule-confirm")
    assert stored(MATRIX) == '{"contain":"wizard"}'


def test_what_cannot_be_known_asks_once_more(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise InputError("The model is gone.", remedy="Install it.")

    page = open_rules(open_page(workspace=copy_demo()))
    with monkeypatch.context() as patch:
        patch.setattr(run, "gather_all", fail)
        # New settings, whose questions are not gathered yet.
        page.at.session_state["cutoff.offset"] = 0.31
        open_chunk(page, MATRIX)
        write(page, '{"contain":"wizard"}')
        assert "The model is gone." in told(page)
        page.press("rule-save")
        assert "could not be" in told(page).partition("Not saved yet.")[2]
        assert stored(MATRIX) != '{"contain":"wizard"}'
        choose_part(page, "Bulk")
        page.choose("bulk-kind", "Remove the rule")
        assert page.at.button(key="bulk-save").disabled
        page.at.checkbox(key="bulk-sure-unknown").check()
        page.run()
        assert not page.at.button(key="bulk-save").disabled


def test_the_second_of_two_sees_the_conflict_and_both_texts(page: Any) -> None:
    open_chunk(page, "monster-beholder")
    write(page, '{"contain":"mine"}')
    bench = resources.open_resources().bench
    store = bench.collection("demo")
    edits.save(store, bench.journal, chunk_id="monster-beholder", rule='{"contain":"theirs"}',
               expected=None, who="test")  # fmt: skip
    page.press("rule-save").press("rule-confirm")
    assert "changed by somebody else" in told(page)
    assert "Stored rule (by test, 20" in told(page)
    assert any('"theirs"' in block.value for block in page.at.code)
    assert page.at.text_area(key="rule-editor").value == '{"contain":"mine"}'
    assert stored("monster-beholder") == '{"contain":"theirs"}'
    page.press("rule-take")
    edits.undo(store, bench.journal, who="test", chunk_id="monster-beholder")


def test_what_is_stored_while_one_types_is_not_overwritten(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_on, typed = typing(monkeypatch), '{"contain_none_of":["mine"]}'
    open_chunk(page, "monster-beholder")
    type_on(page, '{"contain_none_of":["mi')
    bench = resources.open_resources().bench
    store = bench.collection("demo")
    edits.save(store, bench.journal, chunk_id="monster-beholder", rule='{"contain":"theirs"}',
               expected=None, who="test")  # fmt: skip
    type_on(page, typed)
    # Changes from elsewhere do not revert what somebody types.
    assert page.at.text_area(key="rule-editor").value == ""
    write(page, typed).press("rule-save")
    assert "yours is still in the editor" in told(page)
    assert page.at.text_area(key="rule-editor").value == typed
    assert stored("monster-beholder") == '{"contain":"theirs"}'
    page.press("rule-take")
    assert json.loads(page.at.text_area(key="rule-editor").value) == {"contain": "theirs"}
    edits.undo(store, bench.journal, who="test", chunk_id="monster-beholder")


def test_going_to_the_rules_and_back_loses_nothing(
    open_page: Callable[..., Any], workspace: Path
) -> None:
    page = open_page({"profile": "full"}, workspace=workspace).ask(CLERIC)
    page.slide("cutoff.relative_offset", 0.2)
    page.at.text_input(key="filter").set_value("cleric")
    page.run()
    kept, changes, titles = page.kept, page.changes, page.titles
    open_rules(page)
    page.at.switch_page("pages/inspect.py")
    page.run()
    assert (page.kept, page.changes, page.titles) == (kept, changes, titles)
    assert page.at.text_input(key="question").value == CLERIC
    assert page.at.text_input(key="filter").value == "cleric"


def test_only_what_a_user_may_see_is_listed(open_page: Callable[..., Any], workspace: Path) -> None:
    page = open_rules(open_page({"clearance.enabled": "true"}, workspace=workspace))
    every = resources.open_resources().bench.collection("demo").catalogue().values()
    secret = next(chunk for chunk in every if chunk.clearance)
    page.at.text_input(key="rules-text").set_value(secret.id)
    page.run()
    open_chunk(page, secret.id)
    assert "Seen as level 0, no department." in told(page)
    assert secret.title not in page.sent
    assert not [w for w in page.at.text_area if w.key == "rule-editor"]
    page.at.session_state["user"] = type(page.at.session_state["user"])(
        9, (secret.department or "",)
    )
    open_chunk(page, secret.id)
    assert secret.title in told(page)


def choose_part(page: Any, part: str) -> Any:
    return page.choose("rules-part", part)


def leave_out(page: Any, ids: list[str]) -> Any:
    """Untick these rows, and tick the others."""
    held = page.at.session_state
    change = ("demo", Filter(text=held["rules-text"]), "Add a group")
    held["bulk-left-out"] = change, frozenset(ids)
    return page.run()


def save_bulk(page: Any) -> Any:
    if "bulk-sure" in {box.key for box in page.at.checkbox}:
        page.at.checkbox(key="bulk-sure").set_value(True)
        page.run()
    return page.press("bulk-save")


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


def test_an_undo_or_redo_in_the_history_asks_once_more_where_labelled_recall_is_lost(
    page: Any,
) -> None:
    bench = resources.open_resources().bench
    store, right, wrong = bench.collection("demo"), stored(MATRIX), '{"contain":"wizard"}'
    for rule, expected in ((wrong, right), (right, wrong)):
        edit = edits.save(
            store, bench.journal, chunk_id=MATRIX, rule=rule, expected=expected, who="test"
        )
    assert edit is not None
    choose_part(page, "History")
    page.at.session_state["history-open"] = edit.id
    page.run().press("history-undo")
    assert "Not undone yet." in told(page)
    assert "loses relevant" in told(page)
    assert stored(MATRIX) == right
    page.press("history-confirm")
    assert "Undone: 1 rule." in told(page)
    assert stored(MATRIX) == wrong
    page.press("history-redo")
    assert "Redone: 1 rule." in told(page)
    page.at.session_state["history-open"] = edit.id - 1
    page.run().press("history-undo")
    assert "were changed since" in told(page).partition("Not done:")[2]
    assert stored(MATRIX) == right


def test_the_rest_of_a_bulk_change_is_undone_without_what_was_changed_since(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path]
) -> None:
    page = open_rules(open_page(workspace=copy_demo()))
    bench = resources.open_resources().bench
    store, ids = bench.collection("demo"), ("the-cleric", "the-monk", "the-fighter")
    before = {i: stored(i) for i in ids}
    first, *_ = steps.save_all(
        store, bench.journal, rules=dict.fromkeys(ids, CLAW), expected=before, who="test"
    )
    edits.save(
        store, bench.journal, chunk_id=ids[1], rule='{"contain":"mine"}', expected=CLAW, who="test"
    )
    choose_part(page, "History")
    page.at.session_state["history-open"] = first.id
    assert "history-others" not in page.run().buttons
    page.press("history-undo").press("history-others")
    if "history-confirm" in page.buttons:
        page.press("history-confirm")
    assert "Undone: 2 rules." in told(page)
    assert {i: stored(i) for i in ids} == before | {ids[1]: '{"contain":"mine"}'}
    assert "history-others" not in page.buttons


def test_a_family_is_proposed_accepted_and_edited_first(page: Any) -> None:
    settled(choose_part(page, "Suggest"))
    settled(settled(page.press("suggest-find")))
    (frame,) = [f.value for f in page.at.dataframe if "would drop" in f.value]
    assert len(frame) == 21
    assert set(frame["now"]) == {"another rule"}
    assert frame["value"][0].startswith("armor class ")
    # The row of the matrix for every proposal; empty for proposals whose chunk no question
    # retrieves.
    figures = frame[[
        "queries", "blocks", "passes", "overlap", "conflicts", "ΔF1 without", "Δrecall without",
        "fires",
    ]]  # fmt: skip
    assert (figures.notna().all(axis=1) | figures.isna().all(axis=1)).all()
    assert (frame["precision"].notna() == (frame["blocks"] > 0)).all()
    assert (frame["queries"].dropna() > 0).any()
    assert set(frame["fires"].dropna()) <= {"never", "sometimes", "always"}
    assert figures["overlap"].notna().any()
    assert (figures["overlap"].dropna() <= figures["blocks"].dropna()).all()
    assert figures["ΔF1 without"].abs().max() > 0
    before = {c.id: c.rule for c in resources.open_resources().bench.collection("demo")
              .catalogue().values()}  # fmt: skip
    # Rules that somebody wrote are replaced only if asked for.
    assert page.at.button(key="suggest-accept").label == "Accept 0 rules of this family"
    (replace,) = [box for box in page.at.checkbox if box.label == "Replace 21 other rules"]
    replace.check()
    page.run().press("suggest-accept")
    assert "Saved: " in told(page)
    after = {i: stored(i) for i in before if before[i] and "attack-matrix" in i}
    changed = [i for i in after if after[i] != before[i]]
    assert 15 <= len(changed) <= 21
    families = page.at.selectbox(key="suggest-family")
    assert re.search(
        rf"Families with a rule on every chunk: \d+ of {len(families.options)}\.", told(page)
    )
    assert families.index == 0
    page.press("suggest-next")
    assert page.at.selectbox(key="suggest-family").index > 0
    # Each family is asked for.
    assert not any(box.value for box in page.at.checkbox if box.label.startswith("Replace"))
    page.press("suggest-edit")
    assert page.at.session_state["rules-part"] == "Chunks"
    choose_part(page, "History")
    (frame,) = [f.value for f in page.at.dataframe if "who" in f.value]
    page.at.session_state["history-open"] = int(frame["edit"][0])
    page.run().press("history-undo")
    assert {i: stored(i) for i in after} == {i: before[i] for i in after}


def test_one_proposal_shows_what_it_does_and_is_accepted_alone(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offer(chunk: Chunk, rule: str, *others: Any) -> Offer:
        return Offer(chunk, '{"contain":"wizard"}' if chunk.id == MATRIX else rule, *others)

    monkeypatch.setattr(families, "Offer", offer)
    settled(choose_part(page, "Suggest"))
    settled(settled(page.press("suggest-find")))
    family = page.at.selectbox(key="suggest-family")
    (clerics,) = [i for i, name in enumerate(family.options) if "CLERICS" in name]
    family.select_index(clerics)
    page.run()
    bench = resources.open_resources().bench
    for chunk_id, loses in ((MATRIX, True), ("attack-matrix-clerics-ac-7", False)):
        before = stored(chunk_id)
        page.at.selectbox(key="suggest-one").set_value(chunk_id)
        page.run()
        _, shown = [text for text in page.html if "labelled question" in text and "would" in text]
        assert ("loses relevant" in shown and "recall" in shown) is loses
        assert page.at.button(key="suggest-one-accept").disabled is loses
        if loses:
            page.at.checkbox(key="suggest-one-sure").check()
            page.run()
        page.press("suggest-one-accept")
        assert "Saved: 1 rule, accept proposals." in told(page)
        assert stored(chunk_id) not in (None, before)
        edits.undo(bench.collection("demo"), bench.journal, who="test", chunk_id=chunk_id)
        assert stored(chunk_id) == before


def test_the_matrix_is_shown_and_a_rule_looked_at_by_group_and_term(page: Any) -> None:
    settled(choose_part(page, "Matrix"))
    (frame,) = [f.value for f in page.at.dataframe if "ΔF1 without" in f.value]
    # Only one page is sent, and only its rules are offered.
    assert "123 rules over" in told(page)
    assert len(frame) == len(page.at.selectbox(key="matrix-rule").options) == 50
    assert page.at.pagination(key="matrix-page").num_pages == 3
    page.at.text_input(key="matrix-find").set_value("attack-matrix-clerics-ac")
    page.run()
    (frame,) = [f.value for f in page.at.dataframe if "ΔF1 without" in f.value]
    assert len(frame) == 21
    page.at.selectbox(key="matrix-rule").set_value(MATRIX)
    page.run()
    frames = [f.value for f in page.at.dataframe if "ΔF1 without" in f.value]
    words = dict(zip(frames[1]["part"], frames[1]["rule"], strict=True))
    assert words["contain_one_of[1][0]"] == '"armor class 6"'
    assert not [f for f in page.at.dataframe if "question" in f.value]
    page.at.selectbox(key="matrix-rule").set_value("attack-matrix-clerics-ac-2")
    page.run()
    (conflicts,) = [f.value for f in page.at.dataframe if "question" in f.value]
    assert [question.endswith("plate mail and shield?") for question in conflicts["question"]] == [
        True
    ]


def test_the_table_shows_what_rules_do_and_what_harms_first(page: Any) -> None:
    settled(page.press("rules-measure"))
    frame = rules_frame(page)
    ruled = frame[frame["blocks"].notna()]
    # Less distinctive columns come after what identifies a chunk.
    assert list(frame)[-6:] == [
        "queries", "passes", "overlap", "precision", "Δrecall without", "fires",
    ]  # fmt: skip
    assert (ruled["overlap"] <= ruled["blocks"]).all()
    assert (ruled["queries"] <= ruled["blocks"] + ruled["passes"]).all()
    assert set(ruled["fires"]) <= {"never", "sometimes", "always"}
    # Without figures, the first page has only chunks without a rule.
    assert len(ruled)
    assert ((ruled["ΔF1 without"] > 0) | (ruled["conflicts"] > 0)).all()


def test_findings_are_listed_and_mended_by_kind(page: Any) -> None:
    store = resources.open_resources().bench.collection("demo")
    spread = '{"contain_one_of":[["owl"],["bear"],["claw"]]}'
    before = stored("monster-owlbear")
    store.set_rule("monster-owlbear", spread)
    page.at.text_input(key="rules-text").set_value("monster-owlbear")
    settled(choose_part(page, "Bulk").choose("bulk-kind", "Fix findings"))
    (frame,) = [f.value for f in page.at.dataframe if "finding" in f.value]
    assert [list(row) for row in frame[["severity", "kind", "fix"]].to_numpy()] == [
        ["warning", "spread", "if meant so"]
    ]
    assert "Nothing would change." in told(page)
    assert page.at.button(key="bulk-edit").disabled
    (table,) = [key for key in page.at.session_state if key.startswith("bulk-findings-")]
    page.at.session_state[table] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    page.run().press("bulk-edit")
    assert page.at.session_state["rules-open"] == "monster-owlbear"
    settled(choose_part(page, "Bulk"))
    page.at.multiselect(key="bulk-kinds").set_value(["spread"])
    settled(page.run())
    page.press("bulk-save")
    assert stored("monster-owlbear") == '{"contain_one_of":[["owl","bear","claw"]]}'
    assert "No findings." in told(page)
    store.set_rule("monster-owlbear", before)


def test_mends_read_the_texts_as_the_editor_does(page: Any) -> None:
    store = resources.open_resources().bench.collection("demo")
    # Only the text says that 10 is an armor class.
    store.set_rule("the-monk", '{"contain":"ac 10"}')
    page.at.text_input(key="rules-text").set_value("the-monk")
    settled(choose_part(page, "Bulk").choose("bulk-kind", "Fix findings"))
    (frame,) = [f.value for f in page.at.dataframe if "finding" in f.value]
    assert list(frame["kind"]) == ["spelling"]
    store.set_rule("the-monk", None)


def test_questions_that_were_asked_are_counted_apart(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = resources.open_resources().bench.labels
    for kept in (False, True):
        book.record_history("demo", kept)
    choose_part(page, "Matrix").choose("matrix-source", "Questions asked")
    assert "No questions have been asked of this collection yet." in told(page)
    book.remember("demo", CLERIC)
    settled(page.run())
    assert "123 rules over 1 question asked." in told(page)
    (frame,) = [f.value for f in page.at.dataframe if "ΔF1 without" in f.value]
    assert sum(frame["passes"]) >= 1
    assert sum(frame["blocks"]) > 10
    assert frame["ΔF1 without"].isna().all()
    assert "questions asked." not in told(page)
    monkeypatch.setattr(labelled, "MOST_ASKED", 1)
    book.remember("demo", "What is an owlbear?")
    settled(page.run())
    assert "Measured on the last 1 of 2 questions asked." in told(page)


def test_an_effect_covers_the_questions_asked_if_wanted(page: Any) -> None:
    book = resources.open_resources().bench.labels
    for kept in (False, True):
        book.record_history("demo", kept)
    open_chunk(page, MATRIX)
    write(page, '{"contain":"wizard"}')
    assert "effect-asked" not in {toggle.key for toggle in page.at.toggle}
    book.remember("demo", CLERIC)
    page.run()
    assert "questions would change" in told(page)
    assert "asked would change" not in told(page)
    page.at.toggle(key="effect-asked").set_value(True)
    settled(page.run())
    assert "1 of 1 question asked would change." in told(page)
    page.press("rule-discard")


def test_without_labels_the_questions_asked_show_an_effect(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    resources.open_resources().bench.labels.remember("demo", CLERIC)
    monkeypatch.setattr(labelled, "labels", lambda work: None)
    open_chunk(page, MATRIX)
    write(page, '{"contain":"wizard"}')
    assert "Without labelled questions" in told(page)
    assert "asked would change." in told(settled(page.run()))
    page.press("rule-discard")


def test_words_of_nearly_every_question_are_questioned_everywhere(page: Any) -> None:
    bench = resources.open_resources().bench
    store = bench.collection("demo")
    store.set_rule("the-monk", '{"contain_one_of":[["please","monk"]]}')
    questions = {str(number): f"Please, number {number}!" for number in range(4000)}
    bench.labels.put_set("demo", "polite", questions)
    page.at.text_input(key="rules-text").set_value("the-monk")
    open_chunk(page, "the-monk")
    assert [list(state) for state in rules_frame(page)["state"]] == [["! warning"]]
    assert "“please” is in nearly every question" in told(page)
    bench.labels.remove_set("demo", "polite")
    store.set_rule("the-monk", None)


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


def drop_expectations(page: Any, *lines: object) -> Any:
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    page.at.file_uploader(key="tester-expected").set_value(("wanted.jsonl", text, "text/plain"))
    return page.run()


def broken_rows(page: Any) -> list[list[str]]:
    frames = [f.value for f in page.at.dataframe if "expected" in f.value]
    return [list(row) for frame in frames for row in frame.drop(columns="chunk").to_numpy()]


def test_a_file_of_expectations_shows_what_broke(
    open_page: Callable[..., Any], workspace: Path
) -> None:
    page = open_rules(open_page({"clearance.enabled": "false"}, workspace=workspace))
    choose_part(page, "Tester")
    question = "cleric against armor class 6"
    drop_expectations(page, {"question": question, "stay": [MATRIX]})
    assert "1 question, 1 expectation: 0 broken." in told(page)
    assert broken_rows(page) == []
    drop_expectations(
        page,
        {"question": question, "stay": [MATRIX]},
        {"question": "a wizard", "stay": [MATRIX, "nobody"], "go": ["monster-beholder"]},
    )
    assert "2 questions, 4 expectations: 3 broken." in told(page)
    rows = broken_rows(page)
    assert [row[:4] for row in rows] == [
        [2, "a wizard", "must stay", "blocked"],
        [2, "a wizard", "must stay", "no such chunk"],
        [2, "a wizard", "must go", "passed"],
    ]
    assert rows[0][4].startswith("no term of group 1: ")
    assert rows[2][4] == "no rule"


def test_a_file_that_holds_no_expectations_is_refused_with_its_line(page: Any) -> None:
    choose_part(page, "Tester")
    drop_expectations(page, {"question": "a", "stay": [MATRIX]}, {"question": "b", "keep": []})
    said = [text for text in page.html if "wanted.jsonl" in text]
    assert said == [
        "wanted.jsonl, line 2: unknown key 'keep'. "
        'Write {"question": "…", "stay": ["id"], "go": ["id"]}.'
    ]
    assert broken_rows(page) == []


def test_expectations_tell_nothing_of_hidden_chunks(
    open_page: Callable[..., Any], workspace: Path
) -> None:
    page = open_rules(open_page({"clearance.enabled": "true"}, workspace=workspace))
    every = resources.open_resources().bench.collection("demo").catalogue().values()
    secret = next(chunk for chunk in every if chunk.clearance)
    choose_part(page, "Tester")
    drop_expectations(page, {"question": "a", "stay": [MATRIX], "go": [secret.id, "nobody"]})
    assert "1 question, 1 expectation: 1 broken. " in told(page)
    assert "Skipped: 2 about chunks that are not there, or that" in told(page)
    assert len(broken_rows(page)) == 1


def test_files_go_out_and_come_in_with_a_dry_run_first(page: Any, tmp_path: Path) -> None:
    settled(choose_part(page, "Files"))
    lines = page.downloads["demo-rules.jsonl"]().splitlines()
    assert len(lines) == 123
    assert len(page.downloads["demo-rules.csv"]().splitlines()) == 124
    good = {"id": "monster-owlbear", "query_must": {"contain": "owlbear"}}
    bad = {"id": "monster-owlbear-lair", "query_must": {"contains": 1}}
    text = "".join(f"{json.dumps(line)}\n" for line in (good, bad))
    page.at.file_uploader(key="files-file").set_value(("rules.jsonl", text.encode(), "text/plain"))
    settled(page.run())
    assert "1 rule to save, 0 unchanged, 0 held back for doubts, 1 refused." in told(page)
    assert "line 2 monster-owlbear-lair" in told(page)
    page.at.checkbox(key="files-prune").set_value(True)
    settled(page.run())
    assert (
        "124 rules to save (123 of them removals, as the file lacks these rules), 0 unchanged"
        in told(page)
    )
    page.at.checkbox(key="files-prune").set_value(False)
    settled(page.run())
    assert "1 rule to save, 0 unchanged" in told(page)
    assert stored("monster-owlbear") is None
    if "files-sure" in {box.key for box in page.at.checkbox}:
        page.at.checkbox(key="files-sure").set_value(True)
        page.run()
    page.press("files-save")
    assert stored("monster-owlbear") == '{"contain":"owlbear"}'
    choose_part(page, "History")
    (frame,) = [f.value for f in page.at.dataframe if "who" in f.value]
    page.at.session_state["history-open"] = int(frame["edit"][0])
    page.run().press("history-undo")
    assert stored("monster-owlbear") is None


def enter(journal: Journal, chunk_id: str) -> None:
    edit = journal.begin(
        who="ada", collection="demo", chunk_id=chunk_id, before="{}", after=stored(chunk_id)
    )
    journal.finish(edit.id)


def test_only_the_export_of_one_who_sees_everything_counts(
    open_page: Callable[..., Any], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: dict[str, Callable[[], str]] = {}
    draw = st.download_button

    def spy(label: str, data: Any, *args: Any, **options: Any) -> bool:
        offered[options["key"]] = data
        return draw(label, data, *args, **options)

    monkeypatch.setattr(st, "download_button", spy)
    for limited in (True, False):
        params = {"clearance.enabled": str(limited).lower()}
        page = open_rules(open_page(params, workspace=workspace))
        journal = resources.open_resources().bench.journal
        enter(journal, MATRIX)
        choose_part(page, "Files")
        # Edits made after the file was generated are not in it.
        enter(journal, "monster-beholder")
        # A click starts no run, which could remove the file before the browser has it.
        assert page.at.download_button(key="files-jsonl").proto.ignore_rerun
        assert MATRIX in map(
            operator.itemgetter("id"), map(json.loads, offered["files-jsonl"]().splitlines())
        )
        assert (MATRIX in journal.edited_since_export("demo")) is limited
        assert "monster-beholder" in journal.edited_since_export("demo")
