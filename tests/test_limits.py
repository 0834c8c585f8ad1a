"""Which limit applied: one list calculated by hand, with different settings that shorten it."""

from __future__ import annotations

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Hit, Judgement, Pool, PoolResult, Verdict
from ragfilter.results.thresholds import limits
from ragfilter.settings.schema import Settings

DISTANCES = (0.10, 0.20, 0.25, 0.50, 0.55, 0.60, 0.65, 1.20)
"""Similarities 0.95 to 0.675, then 0.4. Steps: 0.1 (skipped), 0.05, 0.25, three of 0.05, 0.55."""


def result(distances: tuple[float, ...] = DISTANCES, /, **settings: Any) -> PoolResult:
    hits = tuple(Hit(Chunk(f"c{n}"), d, n) for n, d in enumerate(distances, start=1))
    return replay(Pool("a question", "demo", "l2", hits), Settings().with_values(settings))


def told(made: PoolResult) -> dict[str, list[str]]:
    """The words of the limits that dropped something, and of those that were not reached."""
    every = limits(made)
    return {
        "bound": [each.words for each in every if each.bound],
        "idle": [each.words for each in every if not each.bound],
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"quality.enabled": True, "quality.min_top_k": 3, "cutoff.max_results": 40, "cutoff.gap_threshold": 0.3},
        {
            "quality.enabled": True,
            "quality.min_top_k": 8,
            "cutoff.max_results": 7,
            "quality.max_top_k": 8,
            "cutoff.gap_threshold": 0.3,
            "cutoff.distance_offset": 0.15,
        },
        {"cutoff.max_results": 5},
        {"cutoff.strategy": "autocut", "cutoff.max_results": 6},
        # Too few hits for a background, so gap cuts.
        {"cutoff.strategy": "relative", "cutoff.max_results": 5},
        {"cutoff.enabled": False, "retrieval.k": 6},
        {"cutoff.enabled": False, "retrieval.k": 20},
    ],
    ids=str,
)
def test_every_limit_says_whether_it_bound_and_what_came_before_it(
    settings: dict[str, Any], snapshot: SnapshotAssertion
) -> None:
    assert told(result(**settings)) == snapshot


def test_a_strategy_s_own_limit_and_the_context_budget_are_limits(snapshot: SnapshotAssertion) -> None:
    # Best 0.10, background 1.0: 0.10 + 0.1 × 0.90 = 0.19 keeps the first.
    distances = (0.10, 0.20, 0.25, *(1.0,) * 60)
    made = result(
        distances,
        **{
            "cutoff.strategy": "relative",
            "cutoff.relative_offset": 0.1,
            "cutoff.max_results": 40,
            "cutoff.min_results": 0,
        },
    )
    assert told(made) == snapshot
    hits = tuple(Hit(Chunk(f"c{n}", "word " * 40), d, n) for n, d in enumerate((0.1, 0.2), start=1))
    tight = Settings().with_values({"context.max_context_tokens": 60})
    assert told(replay(Pool("q", "demo", "l2", hits), tight)) == snapshot


def test_what_stands_too_far_down_is_counted_where_its_place_is_not_its_rank(snapshot: SnapshotAssertion) -> None:
    hits = tuple(Hit(Chunk(f"c{n}"), d, n + 1) for n, d in enumerate(DISTANCES, start=1))
    chosen = {"quality.enabled": True, "quality.min_top_k": 3, "cutoff.enabled": False}
    made = replay(Pool("a question", "demo", "l2", hits), Settings().with_values(chosen))
    assert made.outcomes()["c8"].reason == snapshot
    first, second, *_ = limits(made)
    assert (first.path, first.dropped, second.dropped) == ("quality.min_top_k", 5, 0)


def judged(n: int, kept: int, *, shown: int, distance: float = 0.2, far: int = 0) -> PoolResult:
    """`n` hits, of which the last `far` are unlike the question; the LLM keeps the first `kept` of
    those it is shown. With `shown` 0 it is not asked."""
    hits = tuple(
        Hit(Chunk(f"c{rank}", text="words"), 1.9 if rank > n - far else distance, rank) for rank in range(1, n + 1)
    )
    meant = tuple(hit.id for hit in hits[: min(n - far, 40)])
    asked, left_out = meant[:shown], meant[shown:]
    said = tuple(Verdict(i, "KEEP" if p < kept else "DISCARD") for p, i in enumerate(asked))
    judgements = (Judgement(asked, said, left_out=left_out),) if shown else ()
    chosen = {"judge.enabled": True, "judge.max_prompt_tokens": 20_000, "cutoff.enabled": False}
    pool = Pool("a question", "demo", "l2", hits, judgements=judgements)
    return replay(pool, Settings().with_values(chosen))


def test_what_the_judge_dropped_is_no_limit_s_work(snapshot: SnapshotAssertion) -> None:
    cases: dict[str, dict[str, Any]] = {
        "oversampled": {"n": 60, "kept": 40, "shown": 40},
        "all shown": {"n": 30, "kept": 1, "shown": 30},
        "beyond the budget": {"n": 60, "kept": 5, "shown": 38},
        "too far": {"n": 30, "kept": 5, "shown": 20, "far": 10},
        # Until it is asked, the first max_chunks stay.
        "not asked": {"n": 60, "kept": 0, "shown": 0},
        "not asked, few similar": {"n": 20, "kept": 0, "shown": 0, "far": 5},
    }
    assert {name: told(judged(**case)) for name, case in cases.items()} == snapshot


def test_min_results_says_how_many_it_keeps(snapshot: SnapshotAssertion) -> None:
    few = (0.1, 0.12, 0.4, 0.42)
    cases: list[tuple[tuple[float, ...], dict[str, Any]]] = [
        (few, {"cutoff.min_results": 3}),
        # Nothing is dropped after the cliff; the largest gap did reach the threshold.
        ((0.1, 0.4), {"cutoff.min_results": 2, "cutoff.skip_first": False}),
        (few, {"cutoff.min_results": 2}),
    ]
    assert [told(result(distances, **settings)) for distances, settings in cases] == snapshot


def test_near_duplicates_and_covered_parts_are_limits_work(snapshot: SnapshotAssertion) -> None:
    texts = (
        "the owlbear hunts alone at night",
        "the owlbear hunts alone at night",
        "an owlbear sleeps by day",
        "a dragon hoards gold",
        "a wyvern stings",
        "a lich plots",
        "a mimic waits",
        "a roper hangs",
    )
    hits = tuple(Hit(Chunk(f"c{n}", t), 0.1 + n / 100, n) for n, t in enumerate(texts, start=1))
    chosen = {"diversity.enabled": True, "diversity.per_part": 1, "cutoff.enabled": False, "retrieval.k": 5}
    made = replay(Pool("the owlbear", "demo", "l2", hits), Settings().with_values(chosen))
    assert told(made) == snapshot
