"""A curator from the first visit to rules that are written, measured and exported, by keyboard and
by mouse. The demo has no rules at first, and ends with those that the page proposes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from ragfilter.cli.program import main
from ragfilter.evaluate import evaluation
from ragfilter.evaluate.effect import GatheredQuestions, make_labelled
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.ingest import bundled
from ragfilter.library.workspace import open_workspace
from ragfilter.model import Chunk
from ragfilter.rules.rule import Rule, texts_of
from ragfilter.settings.config import load

pytestmark = [pytest.mark.browser, pytest.mark.model]

RESTORED = 0.95
"""The share of the handwritten rules' noise reduction that the proposed rules must reach."""
SPELLED = '{"contain_one_of": [["cleric"], ["armor class 10"], ["ac 10"]]}'
OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def written(copy_demo: Callable[[], Path]) -> GatheredQuestions:
    """The demo's labelled questions with its handwritten rules."""
    settings = load(profile="query-must", environ={}).settings
    queries, qrels = bundled.queries("demo"), bundled.qrels("demo")
    with open_workspace(copy_demo()) as bench:
        asked = {i: queries[i] for i in qrels}
        pools = completed_pools(asked, settings, bench.backends("demo"))
    return make_labelled(pools, qrels, settings)


@pytest.fixture
def app(serve_app: Callable[..., str], copy_demo: Callable[[], Path]) -> str:
    """A server whose demo has no rules."""
    place = copy_demo()
    bare = ["rules", "bulk", "--remove", "--where", "rule=any", "--yes", "-c", "demo"]
    assert main([*bare, "--data-dir", str(place)]) == 0
    return serve_app(RAGFILTER_DATA_DIR=str(place))


def test_a_curator_writes_measures_and_exports_rules(
    open_tab: OpenTab, written: GatheredQuestions, tmp_path: Path
) -> None:
    tab = open_tab(newcomer=True).pick("profile-box", "^query-must$").rest()
    tab.page.get_by_role("link", name="Rules").press("Enter")
    expect(tab.keyed("rules-next", "button")).to_be_visible()
    one_rule_is_written_by_keyboard(tab.rest())
    what_is_open_survives_a_reload(tab)
    a_family_is_applied_and_measured(tab)
    accepted = exported(tab, tmp_path / "rules.jsonl")
    # After a reload, Streamlit looks below the page's own address first.
    tab.troubles[:] = [each for each in tab.troubles if "404" not in each]
    bare = written.renew({record["id"]: Chunk(record["id"]) for record in bundled.demo_rows()})
    with_accepted = bare.renew({i: Chunk(i, rule=text) for i, text in texts_of(accepted).items()})
    before, by_hand, after = map(noise_reduction, (bare, written, with_accepted))
    assert after - before >= RESTORED * (by_hand - before) > 0
    assert [row.query for row in bare.effect(accepted).rows if row.lost_relevant] == []


def one_rule_is_written_by_keyboard(tab: Any) -> None:
    keys, effect = tab.page.keyboard, tab.keyed("rule-effect")
    words = tab.keyed("rules-text", "input")
    words.fill("clerics armor class 10")
    words.press("Enter")
    expect(tab.page.get_by_text(re.compile("of 572 chunks"))).not_to_contain_text("572 of 572")
    tab.rest()
    keys.press("Alt+ArrowDown")
    expect(tab.chunk.locator("h3")).to_have_text(re.compile("Class 10$"))
    expect(effect).to_contain_text("keep this chunk")
    tab.rest().rule.click()
    top = tab.rule.bounding_box()["y"]
    keys.type(SPELLED[:-1])
    tab.expect_verdict("is not valid JSON")
    keys.type(SPELLED[-1])
    # The effect of the typed rule is next to it, in view, and nothing has moved.
    expect(effect).to_contain_text("with this rule")
    expect(effect).to_contain_text("labelled questions would change")
    expect(effect.locator(".rf-effect").first).to_be_in_viewport()
    assert tab.rest().rule.bounding_box()["y"] == top
    # Two groups with spellings of one term are mended.
    expect(tab.keyed("rule-finding-0")).to_contain_text("put them in one group")
    tab.keyed("rule-mend-0", "button").press("Enter")
    expect(tab.rule).to_have_value(re.compile(r'\["armor class 10", "ac 10"'))
    tab.rest().keyed("rule-save", "button").press("Enter")
    expect(tab.keyed("rules-panel").locator(".rf-good")).to_have_text("Saved.")
    # Undo and redo, from anywhere but a field.
    state = tab.cell(0, "state")
    tab.rest().page.locator("body").press("Control+z")
    expect(state).to_contain_text("none")
    tab.rest().page.locator("body").press("Control+Shift+z")
    expect(state).to_contain_text("changed")


def what_is_open_survives_a_reload(tab: Any) -> None:
    tab.rest().choose("rules-part", "Findings")
    tab.rest().page.reload()
    expect(tab.keyed("findings-families", "button")).to_be_visible()
    expect(tab.rest().keyed("rules-text", "input")).to_have_value("clerics armor class 10")
    tab.choose("rules-part", "Chunks")
    expect(tab.chunk.locator("h3")).to_have_text(re.compile("Class 10$"))
    tab.rest().choose("rules-part", "Findings")
    tab.rest().keyed("rules-text", "input").fill("")
    tab.keyed("rules-text", "input").press("Enter")
    expect(tab.page.get_by_text("572 of 572 chunks")).to_be_visible()


def a_family_is_applied_and_measured(tab: Any) -> None:
    tab.rest().click("findings-families")
    kinds = tab.rest().keyed("findings-kinds")
    kinds.get_by_role("combobox").click()
    tab.page.get_by_role("option").filter(has_text="armor class # · 84").click()
    expect(kinds.locator("[data-tag]:visible")).to_have_text(["armor class # · 84"])
    tab.page.keyboard.press("Escape")
    apply = tab.rest().keyed("findings-save", "button")
    expect(apply).to_have_text("Apply 83 rules")
    expect(tab.page.locator(".rf-effect")).to_contain_text("labelled questions would change")
    # The handwritten rule is replaced only on request.
    tab.keyed("findings-doubtful", "label").click()
    expect(apply).to_have_text("Apply 84 rules")
    # With this profile nothing but the rules drops a chunk, and these drop none that is relevant.
    expect(tab.rest().keyed("findings-sure")).to_have_count(0)
    tab.click("findings-save")
    expect(tab.page.get_by_text("Changed 84 rules.")).to_be_visible()
    tab.rest().choose("rules-part", "Matrix")
    expect(tab.keyed("rules-work")).to_contain_text("84 rules over 156 labelled questions")
    assert set(column(tab, "conflicts")) == {"0"}


def exported(tab: Any, path: Path) -> dict[str, Rule]:
    tab.rest().choose("rules-part", "Files")
    with tab.rest().page.expect_download() as waiting:
        tab.click("files-jsonl")
    waiting.value.save_as(path)
    records = map(json.loads, path.read_text("utf-8").splitlines())
    return {record["id"]: Rule(**record["query_must"]) for record in records}


def column(tab: Any, name: str) -> list[str]:
    """The cells of a matrix column, as a screen reader gets them."""
    grid = tab.rest().keyed("rules-work").locator("table[role='grid']").first
    head = grid.locator("th", has_text=re.compile(rf"^{name}$"))
    cells = grid.locator(f"td[aria-colindex='{head.get_attribute('aria-colindex')}']")
    expect(cells.first).to_be_attached()
    return list(cells.all_inner_texts())


def noise_reduction(labelled: GatheredQuestions) -> float:
    return evaluation.score(labelled.pools, labelled.qrels, labelled.settings).noise_reduction or 0.0
