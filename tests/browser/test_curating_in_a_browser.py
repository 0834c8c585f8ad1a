"""A curator brings the demo without rules to the quality of the handwritten ones, using only the
page, and sees that no labelled question loses what it needs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from ragfilter.cli import main
from ragfilter.evaluate import evaluation, measure
from ragfilter.evaluate.effect import LabelledQuestions, make_labelled
from ragfilter.ingest import demo
from ragfilter.library.workspace import open_workspace
from ragfilter.settings.config import load

pytestmark = [pytest.mark.browser, pytest.mark.model]

"""One attack matrix each, for the opponents' armor classes from -10 to 10."""
WIDTHS = (1440, 900)
"""Of the window, each for half of the walk, which is long."""
RESTORED = 0.95
"""Of the noise reduction of all handwritten rules, wanted of those that the page proposes."""
OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def written(copy_demo: Callable[[], Path]) -> LabelledQuestions:
    """The demo's labelled questions with its handwritten rules."""
    settings = load(profile="query-must", environ={}).settings
    queries, qrels = demo.queries(), demo.qrels()
    with open_workspace(copy_demo()) as bench:
        asked = {i: text for i, text in queries.items() if i in qrels}
        pools = measure.gather_all(asked, settings, bench.backends("demo"))
    return make_labelled(pools, qrels, settings)


@pytest.fixture
def app(serve_app: Callable[..., str], copy_demo: Callable[[], Path]) -> str:
    """A server whose demo has no rules."""
    place = copy_demo()
    bare = ["rules", "bulk", "--remove", "--where", "rule=any", "--yes", "-c", "demo"]
    assert main([*bare, "--data-dir", str(place)]) == 0
    return serve_app(RAGFILTER_DATA_DIR=str(place))


def test_a_demo_without_rules_is_taken_to_the_handwritten_quality(
    open_tab: OpenTab, written: LabelledQuestions, tmp_path: Path
) -> None:
    tab = open_tab({"profile": "query-must", "collection": "demo"}).rest()
    tab.page.get_by_role("link", name="Rules").click()
    tab.rest().choose("rules-part", "Suggest")
    tab.rest().click("suggest-find")
    expect(tab.keyed("suggest-family", "input").first).to_have_value("armor class # · 84")
    effect = tab.page.locator(".rf-effect")
    accept = tab.rest().keyed("suggest-accept", "button")
    for width in WIDTHS:
        resize(tab, width)
        expect(accept).to_have_text(re.compile("Accept 84 rules"))
        expect(effect.first).to_contain_text("labelled question")
        expect(effect.locator(".rf-lost")).to_have_count(0)
        # The proposals are seen before the button that accepts them.
        shown = (tab.keyed("rules-work", ".stDataFrame").first, tab.keyed("suggest-all"))
        tops = [box["y"] for each in shown if (box := each.bounding_box())]
        assert width > 900 or tops == sorted(tops)
    tab.rest().click("suggest-accept")
    expect(tab.page.get_by_text("Saved: 84 rules")).to_be_visible()
    # An accepted family has nothing more to accept.
    expect(accept).to_be_disabled()
    for width in WIDTHS:
        resize(tab, width)
        tab.choose("rules-part", "Matrix")
        expect(tab.keyed("rules-work")).to_contain_text("84 rules over 156 labelled questions")
        assert set(column(tab, "conflicts")) == {"0"}
        tab.rest().choose("rules-part", "Files")
        with tab.rest().page.expect_download() as waiting:
            tab.click("files-jsonl")
        waiting.value.save_as(tmp_path / "rules.jsonl")
        lines = (tmp_path / "rules.jsonl").read_text("utf-8").splitlines()
        records = map(json.loads, lines)
        accepted = {record["id"]: json.dumps(record["query_must"]) for record in records}
        assert len(accepted) == 84
    bare = written.with_changes(dict.fromkeys(record["id"] for record in demo.records()))
    before, by_hand, after = map(noise_reduction, (bare, written, bare.with_changes(accepted)))
    assert after - before >= RESTORED * (by_hand - before) > 0
    assert [row.query for row in bare.effect(accepted).rows if row.lost_relevant] == []


def resize(tab: Any, width: int) -> None:
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.rest()


def column(tab: Any, name: str) -> list[str]:
    """The cells of a matrix column, as a screen reader gets them."""
    grid = tab.rest().keyed("rules-work").locator("table[role='grid']").first
    head = grid.locator("th", has_text=re.compile(rf"^{name}$"))
    cells = grid.locator(f"td[aria-colindex='{head.get_attribute('aria-colindex')}']")
    expect(cells.first).to_be_attached()
    return list(cells.all_inner_texts())


def noise_reduction(labelled: LabelledQuestions) -> float:
    return (
        evaluation.score(labelled.pools, labelled.qrels, labelled.settings).noise_reduction or 0.0
    )
