"""Which limit applied, on one list calculated by hand, with settings that shorten it in turn."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Hit, Judgement, Pool, PoolResult, Verdict
from ragfilter.report.thresholds import first_step, limits
from ragfilter.settings.schema import Settings

DISTANCES = (0.10, 0.20, 0.25, 0.50, 0.55, 0.60, 0.65, 1.20)
"""Similarities 0.95 to 0.675, then 0.4. Steps: 0.1 (skipped), 0.05, 0.25, three of 0.05, 0.55."""


def result(distances: tuple[float, ...] = DISTANCES, /, **settings: Any) -> PoolResult:
    hits = tuple(Hit(Chunk(f"c{n}"), d, n) for n, d in enumerate(distances, start=1))
    return replay(Pool("a question", "demo", "l2", hits), Settings().with_values(settings))


@pytest.mark.parametrize(
    ("settings", "bound", "idle"),
    [
        (
            {"quality.enabled": True, "quality.min_top_k": 3, "cutoff.max_results": 40,
             "cutoff.gap_threshold": 0.3},
            ["Candidates checked first = 3 (quality) drops 5"],
            [
                "Max results = 40 (cutoff) is not reached: 3 chunks came in, limited by "
                "Candidates checked first = 3 (quality)",
                "Gap threshold = 0.300 (cutoff) is not reached: the largest gap is 0.050",
            ],
        ),
        (
            {"quality.enabled": True, "quality.min_top_k": 8, "cutoff.max_results": 7,
             "quality.max_top_k": 8, "cutoff.gap_threshold": 0.3, "cutoff.distance_offset": 0.15},
            ["Similarity threshold = 0.500 (quality) drops 1",
             "Distance offset = 0.150 (cutoff) drops 4"],
            [
                "Candidates checked first = 8 (quality) is not reached: 8 chunks came in",
                "Max results = 7 (cutoff) is not reached: 7 chunks came in, limited by "
                "Similarity threshold = 0.500 (quality)",
                "Gap threshold = 0.300 (cutoff) is not reached: the largest gap is 0.250",
            ],
        ),
        (
            {"cutoff.max_results": 5},
            ["Max results = 5 (cutoff) drops 3", "Gap threshold = 0.100 (cutoff) drops 2"],
            [],
        ),
        (
            {"cutoff.strategy": "autocut", "cutoff.max_results": 6},
            ["Max results = 6 (cutoff) drops 2", "Strategy = autocut (cutoff) drops 3"],
            [],
        ),
        # Too few hits for a background, so gap cuts.
        (
            {"cutoff.strategy": "relative", "cutoff.max_results": 5},
            ["Max results = 5 (cutoff) drops 3", "Gap threshold = 0.100 (cutoff) drops 2"],
            [],
        ),
        ({"cutoff.enabled": False, "retrieval.k": 6}, ["Unfiltered k = 6 drops 2"], []),
        (
            {"cutoff.enabled": False, "retrieval.k": 20},
            [],
            ["Unfiltered k = 20 is not reached: 8 chunks came in"],
        ),
    ],
)  # fmt: skip
def test_every_limit_says_whether_it_bound_and_what_came_before_it(
    settings: dict[str, Any], bound: list[str], idle: list[str]
) -> None:
    made = limits(result(**settings))
    assert [limit.words for limit in made if limit.bound] == bound
    assert [each.words for each in made if not each.bound] == idle


def test_a_strategy_s_own_limit_and_the_context_budget_are_limits(
    snapshot: SnapshotAssertion,
) -> None:
    # Best 0.10, background 1.0: 0.10 + 0.1 × 0.90 = 0.19 keeps the first.
    distances = (0.10, 0.20, 0.25, *(1.0,) * 60)
    made = result(distances, **{"cutoff.strategy": "relative", "cutoff.relative_offset": 0.1,
                                "cutoff.max_results": 40, "cutoff.min_results": 0})  # fmt: skip
    assert [each.words for each in limits(made) if each.bound] == [
        "Max results = 40 (cutoff) drops 23", "Relative offset = 0.100 (cutoff) drops 39",
    ]  # fmt: skip
    hits = tuple(Hit(Chunk(f"c{n}", "word " * 40), d, n) for n, d in enumerate((0.1, 0.2), start=1))
    tight = Settings().with_values({"context.max_context_tokens": 60})
    (told,) = [e for e in limits(replay(Pool("q", "demo", "l2", hits), tight)) if e.bound]
    assert told.words == snapshot


@pytest.mark.parametrize(
    ("distances", "settings", "size"),
    [
        ((0.10, 0.40, 0.45, 0.60), {}, 0.30),
        ((0.10, 0.40, 0.45, 0.60), {"cutoff.skip_first": False}, None),
        ((0.10, 0.40, 0.45, 0.80), {}, None),  # another one is taller
        ((0.10, 0.18, 0.20, 0.22), {}, None),  # below the threshold: no cliff in any case
        ((0.10, 0.40), {}, 0.30),
        ((0.10,), {}, None),
    ],
)
def test_the_first_step_where_it_is_the_tallest(
    distances: tuple[float, ...], settings: dict[str, Any], size: float | None
) -> None:
    assert first_step(result(distances, **settings)) == (size and pytest.approx(size))


def test_what_stands_too_far_down_is_counted_where_its_place_is_not_its_rank(
    snapshot: SnapshotAssertion,
) -> None:
    hits = tuple(Hit(Chunk(f"c{n}"), d, n + 1) for n, d in enumerate(DISTANCES, start=1))
    chosen = {"quality.enabled": True, "quality.min_top_k": 3, "cutoff.enabled": False}
    made = replay(Pool("a question", "demo", "l2", hits), Settings().with_values(chosen))
    assert made.outcomes()["c8"].reason == snapshot
    first, second, *_ = limits(made)
    assert (first.path, first.dropped, second.dropped) == ("quality.min_top_k", 5, 0)


@pytest.mark.parametrize("more", [{}, {"cutoff.enabled": False, "retrieval.k": 5}])
def test_what_is_beyond_k_says_its_place_where_that_is_not_its_rank(
    more: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    hits = tuple(Hit(Chunk(f"c{n}"), d, n + 1) for n, d in enumerate(DISTANCES, start=1))
    made = replay(Pool("a question", "demo", "l2", hits), Settings().with_values(more))
    assert made.outcomes()["c6"].reason == snapshot


def judged(n: int, kept: int, *, shown: int, distance: float = 0.2, far: int = 0) -> PoolResult:
    """`n` hits, of which the last `far` are unlike the question; the LLM keeps the first `kept` of
    those it is shown. With `shown` 0 it is not asked."""
    hits = tuple(
        Hit(Chunk(f"c{rank}", text="words"), 1.9 if rank > n - far else distance, rank)
        for rank in range(1, n + 1)
    )
    meant = tuple(hit.id for hit in hits[: min(n - far, 40)])
    asked, left_out = meant[:shown], meant[shown:]
    said = tuple(Verdict(i, "KEEP" if p < kept else "DISCARD") for p, i in enumerate(asked))
    judgements = (Judgement(asked, said, left_out=left_out),) if shown else ()
    chosen = {"judge.enabled": True, "judge.max_prompt_tokens": 20_000, "cutoff.enabled": False}
    pool = Pool("a question", "demo", "l2", hits, judgements=judgements)
    return replay(pool, Settings().with_values(chosen))


@pytest.mark.parametrize(
    ("made", "bound", "idle"),
    [
        (judged(60, 40, shown=40), ["Oversample = 1.600 (judge) drops 20"], []),
        (
            judged(30, 1, shown=30),
            [],
            ["Oversample = 1.600 (judge) is not reached: 30 chunks came in"],
        ),
        (
            judged(60, 5, shown=38),
            ["Oversample = 1.600 (judge) drops 20", "Prompt budget = 20,000 (judge) drops 2"],
            [],
        ),
        (
            judged(30, 5, shown=20, far=10),
            ["Min similarity = 0.300 (judge) drops 10"],
            ["Oversample = 1.600 (judge) is not reached: 30 chunks came in"],
        ),
        # Until it is asked, the first max_chunks stay.
        (judged(60, 0, shown=0), ["Max chunks = 25 (judge) drops 35"], []),
        (
            judged(20, 0, shown=0, far=5),
            ["Min similarity = 0.300 (judge) drops 5"],
            ["Max chunks = 25 (judge) is not reached: of 20 chunks, 15 are similar enough"],
        ),
    ],
)
def test_what_the_judge_dropped_is_no_limit_s_work(
    made: PoolResult, bound: list[str], idle: list[str]
) -> None:
    every = limits(made)
    assert [each.words for each in every if each.bound] == bound
    assert [each.words for each in every if not each.bound] == idle


@pytest.mark.parametrize(
    ("distances", "settings", "told"),
    [
        (
            (0.1, 0.12, 0.4, 0.42),
            {"cutoff.min_results": 3},
            ["Gap threshold = 0.100 (cutoff) drops 1", "Min results = 3 (cutoff) keeps 1 more"],
        ),
        # Nothing is dropped after the cliff; the largest gap did reach the threshold.
        (
            (0.1, 0.4),
            {"cutoff.min_results": 2, "cutoff.skip_first": False},
            ["Min results = 2 (cutoff) keeps 1 more"],
        ),
        (
            (0.1, 0.12, 0.4, 0.42),
            {"cutoff.min_results": 2},
            ["Gap threshold = 0.100 (cutoff) drops 2"],
        ),
    ],
)
def test_min_results_says_how_many_it_keeps(
    distances: tuple[float, ...], settings: dict[str, Any], told: list[str]
) -> None:
    every = limits(result(distances, **settings))
    assert [each.words for each in every if each.bound] == told
    assert not any("not reached" in each.words for each in every if "gap" in each.path)


def test_near_duplicates_and_covered_parts_are_limits_work() -> None:
    texts = (
        "the owlbear hunts alone at night", "the owlbear hunts alone at night",
        "an owlbear sleeps by day", "a dragon hoards gold", "a wyvern stings", "a lich plots",
        "a mimic waits", "a roper hangs",
    )  # fmt: skip
    hits = tuple(Hit(Chunk(f"c{n}", t), 0.1 + n / 100, n) for n, t in enumerate(texts, start=1))
    chosen = {"diversity.enabled": True, "diversity.per_part": 1, "cutoff.enabled": False,
              "retrieval.k": 5}  # fmt: skip
    made = replay(Pool("the owlbear", "demo", "l2", hits), Settings().with_values(chosen))
    assert [each.words for each in limits(made) if each.bound] == [
        "Chunks per part = 1 (diversity) drops 1",
        "Near-duplicate from = 0.700 (diversity) drops 1",
        "Unfiltered k = 5 drops 1",
    ]
