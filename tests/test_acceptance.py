"""The source documents' own questions on the demo collection: real Chroma, real model.

Figures: Filtering, "Success Criteria"; the wanted ones are those of the README.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragfilter.engine.retrieve import run
from ragfilter.evaluate.run import Evaluation, evaluate
from ragfilter.ingest import demo
from ragfilter.report import rows as report_rows
from ragfilter.settings.config import load
from ragfilter.settings.deployment import Deployment
from ragfilter.workbench import Workbench, open_workbench

pytestmark = pytest.mark.model

CLERIC = ("cleric-ac6", "cleric-ac6-strength", "cleric-ac6-strength-short")
SEEDS = (*CLERIC, "fighter-fighter", "fighter-druid")


@pytest.fixture(scope="module")
def bench(copy_demo: Callable[[], Path]) -> Iterator[Workbench]:
    with open_workbench(Deployment(data_dir=copy_demo())) as bench:
        yield bench


def measured(bench: Workbench, profile: str, *, seeds: bool) -> Evaluation:
    queries = {i: text for i, text in demo.queries().items() if (i in SEEDS) is seeds}
    settings = load(profile=profile, environ={}).settings
    return evaluate(queries, demo.qrels(), settings, bench.backends("demo"))


def test_full_on_the_sources_questions(bench: Workbench) -> None:
    rows = {row.id: row for row in measured(bench, "full", seeds=True).rows}
    wanted = {**dict.fromkeys(CLERIC, 0.87), "fighter-fighter": 0.47, "fighter-druid": 0.40}
    assert rows.keys() == wanted.keys()
    for name, least in wanted.items():
        reduction = rows[name].noise_reduction
        assert reduction is not None
        assert reduction >= least, name
        assert rows[name].lost == ()
    for name in CLERIC:
        assert "attack-matrix-clerics-ac-6" in rows[name].filtered.ids
        assert rows[name].filtered.kept <= 5


def test_query_must_on_the_sources_questions(bench: Workbench) -> None:
    rows = {row.id: row for row in measured(bench, "query-must", seeds=True).rows}
    for name in SEEDS:
        assert rows[name].lost == ()
        assert rows[name].filtered.kept == 15
        result = run(rows[name].query, load(profile="query-must", environ={}).settings,
                     bench.backends("demo"))  # fmt: skip
        failing = {
            d.chunk_id for d in result.trace("query_must").decisions if d.outcome == "dropped"
        }
        assert failing.isdisjoint(rows[name].filtered.ids)
    for name in CLERIC[1:]:
        assert "strength-table-2" not in rows[name].unfiltered.ids
        assert "strength-table-2" in rows[name].filtered.ids


def test_full_beats_the_best_fixed_k(bench: Workbench) -> None:
    others = measured(bench, "full", seeds=False)
    assert len(others.rows) == 151
    assert others.filtered.f1 > others.best_fixed_k.means.f1


@pytest.mark.parametrize(
    ("query", "kept", "dropped"),
    [
        (
            "What monster is more powerful, a hill giant or a troll?",
            {"monster-hill-giant", "monster-troll"},
            "monster-mammoth",
        ),
        ("Black Dragon vs Gold Dragon", {"monster-black-dragon", "monster-gold-dragon"}, None),
    ],
)
def test_both_sides_of_a_comparison_stay(
    bench: Workbench, query: str, kept: set[str], dropped: str | None
) -> None:
    settings = load(profile="adaptive-gap+entities", environ={}).settings
    result = run(query, settings, bench.backends("demo"))
    assert kept <= {hit.id for hit in result.kept}
    assert dropped not in {hit.id for hit in result.kept}


def test_confidence_tells_demo_hits_apart(bench: Workbench) -> None:
    settings = load(profile="full", environ={}).settings
    result = run(demo.queries()["fighter-druid"], settings, bench.backends("demo"))
    assert {row.confidence for row in report_rows(result)} >= {"medium", "low"}
