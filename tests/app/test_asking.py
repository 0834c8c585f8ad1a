"""A question on the page: panels, table, filters and downloads, and answers that reflect every change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragfilter.rules.overview import Checks
from ragfilter.stores.label_book import ASKED
from ragfilter.ui import resources
from ragfilter.ui.session import asking
from ragfilter.ui.session.state import PANELS

pytestmark = pytest.mark.model
OWLBEARS = "Tell me about owlbears"
CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
RULED = {"profile": "query-must", "q": CLERIC}
BROKEN, DOUBTED = "attack-matrix-clerics-ac-7", "attack-matrix-clerics-ac-8"


def test_a_visit_opens_on_an_answered_example_that_nobody_has_asked(open_page: Any, workspace: Path) -> None:
    page = open_page(workspace=workspace)
    bench = resources.open_resources().bench
    assert CLERIC not in (bench.labels.queries("demo", ASKED).values())
    assert page.at.text_input(key="question").value == CLERIC
    assert page.at.query_params["q"] == CLERIC
    assert "attack-matrix-clerics-ac-6" in page.kept


def test_an_edit_of_another_chunk_stops_no_call(
    open_page: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page({"q": OWLBEARS, "profile": "adaptive-gap"}, workspace=workspace)
    opened = resources.open_resources()
    store, pool = opened.bench.collection("demo"), opened.pools.get(page.session.asked)
    stopped: list[Any] = []
    monkeypatch.setattr(asking, "abandon", stopped.append)
    edits = {"another": next(i for i in store.entries() if i not in {c.id for c in pool.chunks}), "a hit": page.ids[0]}
    for whose, n in (("another", 0), ("a hit", 1)):
        store.set_rules({edits[whose]: '{"contain":"dragon"}'})
        page.run()
        assert len(stopped) == n, whose


def test_an_empty_question_changes_nothing_and_downloads_hold_what_is_shown(open_page: Any) -> None:
    raised = {"cutoff.gap_threshold": "1", "cutoff.min_results": "90", "cutoff.max_results": "90"}
    page = open_page({"q": OWLBEARS, "profile": "adaptive-gap", **raised})
    assert len(page.rows) == len(page.titles) == 200
    assert list(page.rows[0])[:4] == ["rank", "place", "id", "title"]
    # One muted line says that current thresholds were fitted to something else.
    assert sum("fitted to the source documents' collections" in said for said in page.html) == 1
    strip = page.strip.partition("retrieved")[0]
    assert "No gap ≥ 1.000 kept values" in page.strip
    page.ask("   ")
    assert page.strip.partition("retrieved")[0] == strip
    assert page.at.query_params["q"] == OWLBEARS
    page.at.text_input(key="filter").set_value("owlbear")
    page.run()
    assert page.ids == ["monster-owlbear", "monster-owlbear-lair"]
    assert page.titles == ["Owlbear", "Owlbear Lair"]
    # With clearance on, so that users of the file see no more than this page showed.
    assert page.downloads["ragfilter.toml"]() == (
        'profile = "adaptive-gap"\n\n[clearance]\nenabled = true\n\n'
        "[cutoff]\nmax_results = 90\nmin_results = 90\ngap_threshold = 1.0\n"
    )


def test_every_panel_draws_and_the_table_is_filtered_and_ordered(open_page: Any) -> None:
    page = open_page({"q": CLERIC, "profile": "query-must"})
    seen = {}
    for panel in PANELS:
        page.choose("panel-box", panel)
        seen[panel] = "\n".join((*page.html, *(code.value for code in page.at.code)))
    assert "extractive: the sentences closest to the question, no LLM" in seen["Answer"]
    assert CLERIC in seen["Prompt"]
    assert "No chunk is open." in seen["Chunk"]
    assert "A re-query loop would take" in seen["Rounds"]
    assert "query_must" in seen["Debug"]
    assert len(page.ids) == 200
    page.choose("order", "Kept first")
    outcomes = [words[0] for words in page.at.dataframe[0].value["outcome"]]
    assert outcomes[:16] == ["● kept"] * 15 + ["✕ dropped"]
    page.at.text_input(key="filter").set_value("matrix clerics query_must")
    page.choose("order", "By rank")
    assert len(page.titles) == len(page.ids) == 21
    ranks = list(page.at.dataframe[0].value["rank"])
    assert ranks == sorted(ranks)
    assert all(i.startswith("attack-matrix-clerics") for i in page.ids)


def answered(page: Any) -> set[str]:
    """The sides that have an answer."""
    return {side for side in ("filtered", "unfiltered") if f"answer-{side}" in page.sent}


def test_every_change_is_answered(open_page: Any) -> None:
    page = open_page({"q": CLERIC, "profile": "full"})
    # None that is labelled relevant was dropped.
    assert not any("labelled relevant" in said for said in page.html)
    changes: tuple[Callable[[], Any], ...] = (
        lambda: page.switch("query_must", False),
        lambda: page.slide("cutoff.relative_offset", 1.0),
        lambda: page.switch("quality", False),
        lambda: page.press("present-button").press("scene-flip"),
    )
    for change in changes:
        change()
        assert answered(page) == {"filtered", "unfiltered"}
        assert "answer" not in page.buttons


def test_the_table_finds_rules_by_their_state(open_page: Any, workspace: Path) -> None:
    page = open_page(RULED, workspace=workspace)
    store = resources.open_resources().bench.collection("demo")
    store.set_rules({BROKEN: "{broken", DOUBTED: '{"contain_one_of": [["a"], ["b"], ["c"]]}'})
    page.run()
    every = page.ids
    catalogue, checks = store.catalogue(), Checks()
    found = {}
    for word in ("invalid", "warning", "none", "valid"):
        page.at.selectbox(key="filter-rule").set_value(word)
        found[word] = page.run().ids
    assert found["invalid"] == [BROKEN]
    assert DOUBTED in found["warning"]
    assert found["none"] == [i for i in every if not catalogue[i].rule]
    assert all(checks.state(catalogue[i]) == "valid" for i in found["valid"])
    assert page.link["rule"] == "valid"
    assert open_page({**RULED, "rule": "invalid"}, workspace=workspace).ids == [BROKEN]
    assert open_page({**RULED, "rule": "no such state"}, workspace=workspace).ids == every
