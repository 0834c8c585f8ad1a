"""The source documents' own questions on the demo collection: real Chroma, real model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from seeds import EXPECTED, FEWEST, LEAST, MOST, RECALL, ROWS, SEEDS, STRENGTH, TABLE, noise_reduction

from ragfilter.answer.context_packing import pack
from ragfilter.answer.extractive import extract
from ragfilter.cli.program import main
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.evaluate.evaluation import Evaluation, evaluate
from ragfilter.evaluate.labelled_queries import relevant_of
from ragfilter.ingest import bundled
from ragfilter.results.rows import rows as report_rows
from ragfilter.settings.config import load
from ragfilter.settings.deployment import Deployment
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def bench(copy_demo: Callable[[], Path]) -> Iterator[Workbench]:
    with Workbench.open(Deployment(data_dir=copy_demo())) as bench:
        yield bench


def measured(bench: Workbench, profile: str, *, seeds: bool) -> Evaluation:
    queries = {i: text for i, text in bundled.queries("demo").items() if (i in SEEDS) is seeds}
    settings = load(profile=profile, environ={}).settings
    return evaluate(queries, bundled.qrels("demo"), settings, bench.backends("demo"))


def test_full_on_the_sources_questions(bench: Workbench) -> None:
    rows = {row.id: row for row in measured(bench, "full", seeds=True).rows}
    assert rows.keys() == {*SEEDS}
    for name, row in rows.items():
        assert row.noise_reduction is not None
        assert row.noise_reduction >= LEAST[name], name
        assert EXPECTED[name] <= {*row.filtered.ids}, name
        assert FEWEST[name] <= row.filtered.kept <= MOST[name], name
        assert row.filtered.recall >= RECALL[name], name
    for name in STRENGTH:
        # The source's headline: at rank 95 before, and visible now.
        assert TABLE not in rows[name].unfiltered.ids


def test_the_command_line_keeps_the_same(copy_demo: Callable[[], Path], capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(copy_demo())
    for name in SEEDS:
        options = ["--collection", "demo", "--profile", "full", "--json", "--data-dir", folder]
        assert main(["query", bundled.queries("demo")[name], *options]) == 0
        told = json.loads(capsys.readouterr().out)
        assert EXPECTED[name] <= {*told["kept"]}, name
        assert len(told["kept"]) <= MOST[name], name
        assert noise_reduction(name, told["kept"], told["unfiltered"]) >= LEAST[name], name


@pytest.mark.parametrize("name", SEEDS)
def test_the_answer_quotes_the_rows_that_each_side_asks_for(bench: Workbench, name: str) -> None:
    query, settings = bundled.queries("demo")[name], load(profile="full", environ={}).settings
    context = pack(search_and_filter(query, settings, bench.backends("demo")).kept, settings).chunks
    quotes = [quote for quote in extract(query, context, bench.embedder) if quote.is_row]
    chunks = [context[quote.number - 1].chunk for quote in quotes]
    rows = [
        (chunk.id, quote.text.removeprefix(chunk.title).lstrip(" :"))
        for quote, chunk in zip(quotes, chunks, strict=True)
    ]
    assert sorted(rows) == sorted(ROWS[name])


def test_query_must_on_the_sources_questions(bench: Workbench) -> None:
    rows = {row.id: row for row in measured(bench, "query-must", seeds=True).rows}
    labels = bundled.qrels("demo")
    for name in SEEDS:
        # Rules and distances keep every relevant chunk among the unfiltered first 15.
        assert {*rows[name].unfiltered.ids} & relevant_of(labels[name]) <= {*rows[name].filtered.ids}
        assert rows[name].filtered.kept == 15
        result = search_and_filter(
            rows[name].query, load(profile="query-must", environ={}).settings, bench.backends("demo")
        )
        failing = {d.chunk_id for d in result.trace("query_must").decisions if d.outcome == "dropped"}
        assert failing.isdisjoint(rows[name].filtered.ids)
    for name in STRENGTH:
        assert TABLE not in rows[name].unfiltered.ids
        assert TABLE in rows[name].filtered.ids


def test_full_beats_the_best_fixed_k(bench: Workbench) -> None:
    others = measured(bench, "full", seeds=False)
    assert len(others.rows) == 149
    assert others.best_fixed_k is not None
    assert others.filtered.f1 > 0.625 > others.best_fixed_k.means.f1
    assert others.filtered.mean_kept <= 4


@pytest.mark.parametrize(
    ("query", "kept", "dropped"),
    [
        (
            "What monster is more powerful, a hill giant or a troll?",
            {"monster-hill-giant", "monster-troll"},
            "monster-mammoth",
        ),
        ("hill giant vs troll", {"monster-hill-giant", "monster-troll"}, "monster-mammoth"),
        ("Black Dragon vs Gold Dragon", {"monster-black-dragon", "monster-gold-dragon"}, None),
    ],
)
def test_both_sides_of_a_comparison_stay(bench: Workbench, query: str, kept: set[str], dropped: str | None) -> None:
    settings = load(profile="adaptive-gap+entities", environ={}).settings
    result = search_and_filter(query, settings, bench.backends("demo"))
    assert kept <= {hit.id for hit in result.kept}
    assert dropped not in {hit.id for hit in result.kept}


BEHOLDERS = {"monster-beholder", "monster-beholder-lair"}
MONSTERS = {"category-monsters", "category-monster-book"}
OWLBEARS = {"monster-owlbear", "monster-owlbear-lair"}


@pytest.mark.parametrize(
    ("query", "kept", "most"),
    [
        # A cliff, or the distance to the best, cuts what is not about them.
        ("Tell me about beholders", {*BEHOLDERS, "monster-eye-tyrant"}, 4),
        ("beholder", {*BEHOLDERS, "monster-eye-tyrant"}, 4),
        ("What is a beholder?", BEHOLDERS, 4),
        ("Tell me about owlbears", OWLBEARS, 4),
        ("monsters", MONSTERS, 4),
        ("Tell me about monsters", MONSTERS, 4),
        # There is no cliff, so k limits the chunks.
        ("Tell me about dragons", {"category-dragon", "monster-black-dragon"}, 5),
        ("dragon", {"category-dragon", "monster-gold-dragon"}, 5),
        ("abilities", {"character-abilities", "strength"}, 5),
    ],
)
def test_adaptive_filtering_on_its_documents_questions(bench: Workbench, query: str, kept: set[str], most: int) -> None:
    settings = load(profile="adaptive-gap", environ={}).settings
    result = search_and_filter(query, settings, bench.backends("demo"))
    ids = [hit.id for hit in result.kept]
    assert kept <= {*ids}
    assert 2 <= len(ids) <= most


def test_broad_questions_keep_nothing_but_dragons(bench: Workbench) -> None:
    settings = load(profile="adaptive-gap", environ={}).settings
    relevant = {i for i, grade in bundled.qrels("demo")["monsters-04"].items() if grade > 0}
    for query in ("Tell me about dragons", "dragon"):
        ids = {hit.id for hit in search_and_filter(query, settings, bench.backends("demo")).kept}
        assert (len(ids), ids <= relevant) == (5, True)


@pytest.mark.parametrize(
    ("query", "path", "values"),
    [
        ("beholder", "cutoff.gap_threshold", (0.05, 0.1, 0.15)),
        ("dragon", "cutoff.distance_offset", (0.3, 0.4, 0.5)),
        ("abilities", "cutoff.max_results", (3, 5, 10)),
    ],
)
def test_a_more_lenient_value_keeps_no_less(bench: Workbench, query: str, path: str, values: tuple[float, ...]) -> None:
    base = load(profile="adaptive-gap", environ={}).settings
    kept = [
        [hit.id for hit in search_and_filter(query, base.with_values({path: v}), bench.backends("demo")).kept]
        for v in values
    ]
    assert all(more[: len(less)] == less for less, more in pairwise(kept))
    if path == "cutoff.max_results":
        assert [len(ids) for ids in kept] == [3, 5, 10]


def test_nothing_in_the_collection_is_about_lightsabers(
    copy_demo: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["query", "What is a lightsaber?", "-c", "demo", "-p", "adaptive-gap", "--answer"]
    assert main([*args, "--data-dir", str(copy_demo())]) == 0
    # All five are within the best distance + 0.4, and the answer says that they lack it.
    assert "may not" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("Tell me about beholders", BEHOLDERS),
        ("beholder", BEHOLDERS),
        ("What is a beholder?", BEHOLDERS),
        ("Tell me about owlbears", OWLBEARS),
        ("monsters", MONSTERS),
        ("Tell me about monsters", {"category-monsters"}),
        ("Tell me about dragons", {"category-dragon", "monster-black-dragon"}),
        ("dragon", {"category-dragon", "monster-gold-dragon"}),
        ("abilities", {"character-abilities"}),
        ("What monster is more powerful, a hill giant or a troll?", {"monster-hill-giant", "monster-troll"}),
        ("hill giant vs troll", {"monster-hill-giant", "monster-troll"}),
        ("Black Dragon vs Gold Dragon", {"monster-black-dragon", "monster-gold-dragon"}),
    ],
)
def test_full_keeps_what_the_other_questions_of_the_sources_name(bench: Workbench, query: str, kept: set[str]) -> None:
    settings = load(profile="full", environ={}).settings
    assert kept <= {hit.id for hit in search_and_filter(query, settings, bench.backends("demo")).kept}


def test_confidence_tells_demo_hits_apart(bench: Workbench) -> None:
    settings = load(profile="full", environ={}).settings
    result = search_and_filter(bundled.queries("demo")["fighter-druid"], settings, bench.backends("demo"))
    assert {row.confidence for row in report_rows(result)} >= {"medium", "low"}
