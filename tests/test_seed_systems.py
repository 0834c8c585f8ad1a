"""Each source document's system alone: its profile enables its layers, with its figures.

Every table names its source document. The cutoff's own worked examples are in test_cutoff.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from calibrations import calibration

from ragfilter.cli.options import load_config
from ragfilter.engine.replay import replay
from ragfilter.layers import clearance, quality
from ragfilter.layers.references import DEPTHS
from ragfilter.model import Chunk, Entity, Hit, Judgement, Pool, PoolResult, Verdict
from ragfilter.settings.config import load
from ragfilter.settings.field import FieldInfo
from ragfilter.settings.schema import Settings, TunedOn, fields

GAP = {
    "cutoff.strategy": "gap",
    "cutoff.gap_threshold": 0.1,
    "cutoff.distance_offset": 0.4,
    "cutoff.min_results": 2,
    "cutoff.max_results": 5,
    "confidence.high_below": 0.2,
    "confidence.medium_below": 0.4,
}
SYSTEMS: dict[str, tuple[set[str], dict[str, Any]]] = {
    # Adaptive Filtering Algorithm
    "adaptive-gap": ({"cutoff"}, GAP | {"retrieval.k": 5}),
    # Adaptive Result Filtering
    "adaptive-gap+entities": ({"cutoff", "entities"}, GAP | {"retrieval.k": 5}),
    # Adaptive Retrieval System
    "adaptive-retrieval": (
        {"clearance", "quality"},
        {
            "quality.mode": "when_poor",
            "quality.min_top_k": 3,
            "quality.max_top_k": 10,
            "quality.score_threshold": 0.5,
            "quality.reranker_model": "cross-encoder/ms-marco-MiniLM-L-6-v2",
            "quality.reranker_top_k": 3,
            "quality.reranker_threshold": 0.3,
        },
    ),
    # Filtering
    "query-must": ({"query_must"}, {"retrieval.k": 15, "query_must.max_rounds": 3}),
    # Intelligent Chunk Filtering
    "llm-filter": (
        {"judge"},
        {
            "retrieval.k": 25,
            "judge.max_chunks": 25,
            "judge.oversample": 1.6,
            "judge.min_relevance": 0.3,
            "judge.timeout_ms": 5000,
            "judge.max_prompt_tokens": 2000,
            "judge.max_expansion": 50,
        },
    ),
    "full": ({"clearance", "query_must", "entities", "words", "quality", "cutoff"}, {}),
}


def profile(name: str, **environ: str) -> Settings:
    return load(profile=name, environ=environ).settings


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_profile_switches_on_exactly_its_system_with_its_figures(name: str) -> None:
    layers, figures = SYSTEMS[name]
    settings = profile(name)
    assert {f.section for f in fields() if f.name == "enabled" and settings.get(f.path)} == layers
    assert {path: settings.get(path) for path in figures} == figures
    assert {t.layer for t in replayed(settings, [0.1]).traces if t.enabled} - layers <= {"top_k", "context"}


ENVIRONMENT = {
    # Adaptive Retrieval System, "Environment Variables"
    "adaptive-retrieval": {
        "MIN_TOP_K": "3",
        "MAX_TOP_K": "10",
        "RETRIEVAL_SCORE_THRESHOLD": "0.5",
        "ENABLE_RERANKER": "True",
        "RERANKER_TOP_K": "3",
        "RERANKER_SCORE_THRESHOLD": "0.3",
    },
    # Intelligent Chunk Filtering, "Environment Variables"
    "llm-filter": {
        "CHUNK_FILTERING_ENABLED": "true",
        "CHUNK_FILTERING_OVERSAMPLE_MULTIPLIER": "1.6",
        "CHUNK_FILTERING_MIN_RELEVANCE_THRESHOLD": "0.3",
        "CHUNK_FILTERING_LLM_TIMEOUT_MS": "5000",
        "CHUNK_FILTERING_MAX_PROMPT_TOKENS": "2000",
    },
}


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_the_documents_own_variables_with_their_own_values_change_nothing(name: str) -> None:
    assert profile(name, **ENVIRONMENT[name]) == profile(name)


def replayed(settings: Settings, distances: list[float], **pool: Any) -> PoolResult:
    """The settings over hits c1, c2, ... at these distances."""
    chunks = pool.pop("chunks", {})
    hits = tuple(
        Hit(chunks.get(f"c{rank}", Chunk(f"c{rank}", text="words")), distance, rank)
        for rank, distance in enumerate(distances, start=1)
    )
    return replay(Pool(pool.pop("query", "words"), "seed", "l2", hits, **pool), settings)


def kept(result: PoolResult) -> list[int]:
    """The places of the hits that stay: 1 for c1."""
    return [int(hit.id[1:]) for hit in result.kept]


def of_similarity(*similarities: float) -> list[float]:
    return [2 * (1 - s) for s in similarities]


# Adaptive Filtering Algorithm, Adaptive Result Filtering


def test_adaptive_gap_cuts_the_beholders_at_the_largest_gap() -> None:
    result = replayed(profile("adaptive-gap"), [0.12, 0.18, 0.22, 0.35, 0.50])
    assert kept(result) == [1, 2, 3, 4]


def test_adaptive_gap_with_entities_keeps_both_giants_and_drops_the_mammoth() -> None:
    titles = ("Hill Giant", "GIANT", "TROLL", "Frost Giant", "MAMMOTH")
    chunks = {f"c{i}": Chunk(f"c{i}", title=t) for i, t in enumerate(titles, start=1)}
    result = replayed(
        profile("adaptive-gap+entities"),
        [0.8813, 0.9313, 0.9356, 1.0763, 1.0834],
        query="hill giant vs troll",
        chunks=chunks,
        entities=(Entity("hill giant", ("c1", "c2")), Entity("troll", ("c3",))),
    )
    assert sorted(kept(result)) == [1, 2, 3]
    assert kept(result)[:2] == [1, 3]


# Adaptive Retrieval System

FLOW = [
    # "Starts small": three good ones
    ((0.9, 0.8, 0.7, 0.6), "none", [1, 2, 3]),
    # "Single High-Quality Document": that one alone, and top-k is not raised
    ((0.9, 0.4, 0.3, 0.8), "none", [1]),
    # "Reranker Disabled": 3 → 5 → 7 → 9 → 10
    ((0.4, 0.4, 0.4, 0.4, 0.5), "none", [5]),
    ((0.4,) * 6 + (0.5,), "none", [7]),
    ((0.4,) * 8 + (0.5,), "none", [9]),
    ((0.4,) * 9 + (0.5,), "none", [10]),
    # "No Quality Results": nothing, though the eleventh is good
    ((0.4,) * 10 + (0.9,), "none", []),
]


@pytest.mark.parametrize(("similarities", "reranker", "stays"), FLOW)
def test_the_flow_of_adaptive_retrieval(similarities: tuple[float, ...], reranker: str, stays: list[int]) -> None:
    settings = profile("adaptive-retrieval").with_values({"quality.reranker": reranker})
    result = replayed(settings, of_similarity(*similarities))
    assert kept(result) == stays
    assert result.status == ("ok" if stays else "low_quality_results")
    assert result.message == ("" if stays else quality.MESSAGE)


def test_poor_results_are_reranked_ten_wide_and_three_stay() -> None:
    settings = profile("adaptive-retrieval")
    result = replayed(settings, of_similarity(*(0.4,) * 12))
    (need,) = result.needs
    assert need.chunk_ids == tuple(f"c{i}" for i in range(1, 11))
    scores = [0.1, 0.2, 0.9, 0.3, 0.29, 0.8, 0.5, 0.4, 0.1, 0.1, None, None]
    hits = tuple(
        Hit(hit.chunk, hit.distance, hit.rank, rerank_score=score)
        for hit, score in zip(result.hits, scores, strict=True)
    )
    pool = Pool("words", "seed", "l2", hits, reranker=quality.reranker_key(settings.quality))
    assert kept(replay(pool, settings)) == [3, 6, 7]


def test_security_filtering_comes_first_and_is_told_with_the_highest_level() -> None:
    chunks = {f"c{i}": Chunk(f"c{i}", clearance=level) for i, level in enumerate((3, 4, 1), 1)}
    settings = profile("adaptive-retrieval")
    result = replayed(settings, of_similarity(0.9, 0.9, 0.9), chunks=chunks)
    assert (kept(result), result.status) == ([], "insufficient_clearance")
    assert result.message == f"{clearance.BARRED} Ask someone with clearance level 4."
    # The quality layer sees only visible chunks: here only the poor one, which waits for a reranker.
    chunks["c3"] = Chunk("c3")
    result = replayed(settings, of_similarity(0.9, 0.9, 0.4), chunks=chunks)
    assert [need.chunk_ids for need in result.needs] == [("c3",)]


# Filtering


def groups(*terms: str, armor_class: int) -> str:
    spellings = f'"armor class {armor_class}", "ac {armor_class}", "a.c. {armor_class}"'
    names = ", ".join(f'"{term}", "{term}s"' for term in terms)
    return f'{{"contain_one_of": [[{names}], [{spellings}]], "match": "substring"}}'


def test_query_must_keeps_the_matrix_and_the_strength_table() -> None:
    chunks = {
        "c1": Chunk("c1", rule=groups("cleric", "druid", "monk", armor_class=6)),
        "c2": Chunk("c2", rule=groups("cleric", "druid", "monk", armor_class=5)),
        "c3": Chunk("c3", title="STRENGTH TABLE II.: ABILITY ADJUSTMENTS"),
        "c4": Chunk("c4", rule=groups("fighter", "paladin", "ranger", armor_class=6)),
    }
    query = "What does a 7th level cleric with strength 17 need to roll to hit armor class 6?"
    result = replayed(profile("query-must"), [0.1, 0.2, 0.3, 0.4], query=query, chunks=chunks)
    assert kept(result) == [1, 3]


# Intelligent Chunk Filtering


def test_llm_filter_shows_forty_and_keeps_what_the_llm_keeps() -> None:
    settings = profile("llm-filter").with_values({"judge.max_prompt_tokens": 20_000})
    waiting = replayed(settings, [0.2] * 60)
    (need,) = waiting.needs
    assert need.chunk_ids == tuple(f"c{i}" for i in range(1, 41))
    said = (Verdict("c2", "KEEP"), Verdict("c3", "DISCARD"), Verdict("c9", "KEEP"))
    judged = replayed(settings, [0.2] * 60, judgements=(Judgement(need.chunk_ids, said),))
    assert kept(judged) == [2, 9]
    failed = Judgement(need.chunk_ids, error="no answer")
    fallen = replayed(settings, [0.2] * 60, judgements=(failed,))
    assert kept(fallen) == list(range(1, 26))


def test_the_depths_of_an_expansion() -> None:
    assert DEPTHS == (1, 3, 5)


# every parameter


LEARNED = calibration(beyond=1.5, weights={"way": -4.0}).json_text
TUNED = TunedOn(
    collection="c",
    embedder="",
    space="l2",
    reranker="",
    labels="",
    queries=20,
    date="",
    strategy="gap",
    values={"cutoff.gap_threshold": 0.12},
).json_text
TABLES = {"cutoff.calibration": LEARNED, "cutoff.tuned_on": TUNED}


def another(info: FieldInfo) -> str:
    """An allowed value that is not the default, as a user would write it."""
    if info.choices:
        return next(choice for choice in info.choices if choice != info.default)
    if info.value_type is bool:
        return str(not info.default)
    if info.table is not None:
        return TABLES[info.path]
    if info.value_type is str:
        return "dense=0.5" if info.path == "cutoff.limits" else "another"
    return f"{info.default + (1 if info.value_type is int else 0.05):g}"


@pytest.mark.parametrize("info", fields(), ids=lambda info: info.path)
def test_set_reaches_every_parameter(info: FieldInfo) -> None:
    text = another(info)
    settings = load_config("adaptive-gap", None, [f"{info.path}={text}"], {}).settings
    assert settings.changed_from(profile("adaptive-gap")).keys() == {info.path}
    assert str(settings.get(info.path)) == text
