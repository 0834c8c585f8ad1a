"""The Compare page on the demo: one question and a query set with two settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from labelled_demo import put_labelled
from syrupy.assertion import SnapshotAssertion

from ragfilter.ingest import bundled
from ragfilter.model import PoolResult
from ragfilter.ui import resources

pytestmark = pytest.mark.model

CLERIC = bundled.queries("demo")["cleric-ac6"]
FEW = 4


@pytest.fixture
def page(open_page: Any, workspace: Path) -> Callable[..., Any]:
    """The Compare page as a link opens it, with the query set few of labelled questions."""

    def open_(**params: str) -> Any:
        page = open_page({"collection": "demo", "profile": "full", **params}, workspace=workspace, on="compare")
        book = resources.open_resources().bench.labels
        if "few" not in book.sets("demo"):
            put_labelled(book, "few", [*bundled.qrels("demo")][-FEW:])
            page.run()
        return page

    return open_


def said(page: Any) -> str:
    """The sentence over one question, or the figures over a query set."""
    starts = ("Both keep", "Only", "Comparison", "B better")
    return next(text for text in page.html if text.startswith(starts))


APART = "Both keep 2 chunks, and only A keeps 13 more. A's prompt has 2,329 tokens, B's 313."


def test_two_sides_of_one_question(page: Callable[..., Any], library: Callable[..., PoolResult]) -> None:
    shown = page(q=CLERIC)
    assert said(shown) == APART
    stacks = next(each.value for each in shown.at.html if 'class="rf-stacks"' in each.value)
    assert all(f'title="{hit.chunk.title}: kept by both"' in stacks for hit in library(CLERIC).kept)
    assert len(re.findall(": dropped by [a-z_]+ on the other side: ", stacks)) == 13
    # Both sides have their own answers.
    shown.choose("compare-step", "Answers")
    assert any(text.startswith("A 15 chunks") for text in shown.html)
    assert any(text.startswith("B 2 chunks") for text in shown.html)
    # A vote on the two answers is counted and changed.
    shown.press("prefer-compare-second")
    assert any("This pair: 1 vote, 1 for B." in text for text in shown.html)
    shown.press("prefer-compare-neither")
    assert any("This pair: 1 vote, 1 both poor." in text for text in shown.html)
    (vote,) = resources.open_resources().bench.preferences.of("demo")
    assert len(vote.first.chunks + vote.second.chunks) == 17
    assert {vote.first.profile, vote.second.profile} == {"full", "unfiltered"}


def test_sides_are_swapped_and_copied_and_come_by_link(page: Callable[..., Any], snapshot: SnapshotAssertion) -> None:
    shown = page(q=CLERIC).press("sides-swap")
    assert "only B keeps 13 more" in said(shown)
    assert _link(shown) == {"a": "settings", "b": "unfiltered"}
    # A copy of the current settings stays the same while they change.
    shown.press("sides-copy").slide("cutoff.max_results", 1)
    assert _link(shown) == {"a": "settings", "b": "full"}
    assert "Both keep 1 chunk, and only B keeps 1 more" in said(shown)
    shown.choose("compare-step", "Settings")
    assert any("Max results: 1 → 15" in text for text in shown.html)
    shown = page(q=CLERIC, **{"a": "full", "a.cutoff.max_results": "1", "b": "by-otsu"})
    assert shown.at.selectbox(key="side-a-box").options[1] == snapshot
    assert "Both keep 1 chunk" in said(shown)
    shown.choose("compare-step", "Settings")
    assert any("Strategy: relative → otsu" in text for text in shown.html)
    shown = page(q="Tell me about dragons")
    assert "Both keep 9 chunks, only A keeps 6 more, and only B keeps 1 more. A's prompt" in said(shown)


def test_what_a_link_wants_and_is_not_there_is_said(page: Callable[..., Any]) -> None:
    # A learned strategy is offered only after it has been learned.
    for params in ({"a": "run-77", "b": "by-calibrated"}, {"b": "by-magic", "set": "nothing"}):
        shown = page(q=CLERIC, **params)
        told = " ".join((*shown.warnings, *shown.html)).replace("\\", "")
        assert [name for name in params.values() if f"'{name}'" not in told] == []
        assert "set" in params or said(shown) == APART


def test_a_query_set_is_measured_and_compared(page: Callable[..., Any]) -> None:
    shown = page(set="few")
    assert any("A is not measured yet" in t or "A and B are not" in t for t in shown.html)
    shown.press("compare-measure")
    assert "paired permutation test p" in said(shown)
    assert any(text.startswith("B is neither clearly better nor worse than A: F1 +") for text in shown.html)
    better, worse = _count(shown, "B better"), _count(shown, "B worse")
    assert better + worse + _count(shown, "the same") == FEW
    # The run of B has A as a row, so only one run was made.
    assert len(resources.open_resources().bench.runs.saved("demo")) == 1
    table = shown.at.dataframe[0].value
    assert {table[f"{name}_{side}"].dtype.kind for name in ("kept", "tokens") for side in "ab"} <= {*"if"}
    assert (table["gain"].round(9) == (table["f1_b"] - table["f1_a"]).round(9)).all()
    assert list(table["gain"].abs()) == sorted(table["gain"].abs(), reverse=True)
    assert "B is " in shown.downloads["ragfilter-compare.html"]()
    # With the sides swapped, wins and losses are swapped.
    shown.press("sides-swap")
    assert (_count(shown, "B better"), _count(shown, "B worse")) == (worse, better)
    # The saved run, which was made for A, is a side too.
    number = resources.open_resources().bench.runs.saved("demo")[0].id
    shown.at.selectbox(key="side-b-box").set_value(f"run-{number}")
    shown.run().at.selectbox(key="side-a-box").set_value("settings")
    shown.run()
    assert _link(shown) == {"a": "settings", "b": f"run-{number}", "set": "few"}
    worst = shown.at.dataframe[0].value.sort_values("gain").iloc[0]
    assert worst["gain"] < 0
    shown.press("compare-open-worst")
    assert shown.at.text_input(key="question").value.startswith(worst["query"].removesuffix("…"))
    assert "keep" in said(shown)


def test_a_run_over_files_is_compared_without_a_query_set(page: Callable[..., Any]) -> None:
    shown = page(set="few")
    if "compare-measure" in shown.buttons:
        shown.press("compare-measure")
    saved = resources.open_resources().bench.runs
    stored = saved.saved("demo")[0]
    title = "queries.jsonl, labels of qrels.tsv"
    of_files = saved.begin(replace(stored.plan, query_set=title), who="ann")
    for record in saved.records(stored.id):
        saved.keep(of_files.id, record["id"], record)
    # The link to Compare from this run on Evaluate.
    shown = page(a="unfiltered", b=f"run-{of_files.id}", set="queries.jsonl")
    assert "paired permutation test p" in said(shown)
    assert any(f"over their own questions: {title}." in text for text in shown.html)
    # The run has no row for other settings, and there is no set to measure them on.
    shown.slide("cutoff.max_results", 3)
    shown.at.selectbox(key="side-a-box").set_value("settings")
    assert any("no query set 'queries.jsonl'" in text for text in shown.run().html)
    saved.remove(of_files.id)


def _link(page: Any) -> dict[str, str]:
    params = dict(page.at.query_params)
    own = {k: v[0] if isinstance(v, list) else v for k, v in params.items()}
    return {k: v for k, v in own.items() if k in ("a", "b", "set") or k.startswith(("a.", "b."))}


def _count(page: Any, word: str) -> int:
    return int(said(page).partition(f"{word} ")[2].split()[0])
