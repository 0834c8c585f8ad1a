"""Adaptive Retrieval System: the flow and its edge cases, with the source's default figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.replay import replay
from ragfilter.layers import quality
from ragfilter.layers.layer import LayerInput, LayerOutput
from ragfilter.model import PUBLIC, Chunk, Failure, Hit, Pool
from ragfilter.results.summary import layer_line
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Quality, Settings


def run(
    similarities: list[float],
    *,
    scores: list[float] | None = None,
    failure: str = "",
    pinned: frozenset[str] = frozenset(),
    **values: object,
) -> LayerOutput:
    settings = Settings().with_values({f"quality.{name}": v for name, v in values.items()})
    hits = tuple(
        Hit(Chunk(f"c{i}"), 2 * (1 - s), i, rerank_score=scores[i - 1] if scores else None)
        for i, s in enumerate(similarities, start=1)
    )
    key = quality.reranker_key(settings.quality)
    failures = (Failure("rerank", key, failure),) if failure else ()
    reranker = key if scores or failure else ""
    pool = Pool("q", "c", "l2", hits, failures=failures, reranker=reranker)
    pins = dict.fromkeys(pinned, "named in the comparison")
    inputs = LayerInput(settings, pool, compiled_rules(()).scan("q"), PUBLIC, pins)
    return quality.apply(hits, inputs)


def ids(step: LayerOutput) -> list[str]:
    return [hit.id for hit in step.hits]


POOR = [0.45, 0.44, 0.43, 0.42, 0.41, 0.40, 0.39, 0.38, 0.37, 0.36]


def test_the_width_that_leaves_out_good_candidates_is_named() -> None:
    hits = tuple(Hit(Chunk(f"c{i}"), 0.1 if i < 6 else 1.9, i) for i in range(1, 8))
    settings = Settings().with_values({"quality.enabled": True})
    made = replay(Pool("q", "c", "l2", hits), settings)
    line = layer_line(made.trace("quality"), made)
    assert line == "keeps 3 with similarity ≥ 0.500; min_top_k = 3 leaves out 2 that are good enough"


def test_the_incremental_path() -> None:
    assert quality.widths(Quality()) == (3, 5, 7, 9, 10)
    assert quality.widths(Quality(min_top_k=10)) == (10,)
    assert quality.widths(Quality(min_top_k=4, max_top_k=9)) == (4, 6, 8, 9)


def test_reranked_the_best_three_above_the_threshold(snapshot: SnapshotAssertion) -> None:
    scores = [0.1, 0.9, 0.3, 0.29, 0.5, 0.2, 0.2, 0.2, 0.2, 0.4]
    step = run(POOR, scores=scores)
    assert ids(step) == ["c2", "c5", "c10"]
    assert [d.reason for d in step.decisions] == snapshot


@pytest.mark.parametrize(
    ("similarities", "options", "reranked"),
    [
        (POOR, {"scores": [0.9] * 10}, True),
        # Good matches, kept for their similarity: scores of an earlier look do not matter.
        ([0.8, 0.7, 0.6], {"scores": [0.9, 0.8, 0.5]}, False),
        ([0.8, 0.7, 0.6], {"scores": [0.9, 0.8, 0.5], "mode": "always"}, True),
        (POOR, {}, False),
        (POOR, {"scores": [0.9] * 10, "reranker": "none"}, False),
        (POOR, {"scores": [0.9] * 10, "failure": "model gone"}, False),
    ],
)
def test_it_says_whether_the_order_is_the_rerankers(
    similarities: list[float], options: dict[str, Any], reranked: bool
) -> None:
    assert run(similarities, **options).reranked is reranked
    pinned = run(similarities, pinned=frozenset({"c1"}), **options)
    assert pinned.reranked is reranked


def test_a_failed_reranker_is_a_visible_fallback() -> None:
    similarities = [*POOR[:4], 0.6]
    step = run(similarities, failure="model gone")
    assert ids(step) == ["c5"]
    (kept,) = [d for d in step.decisions if d.chunk_id == "c5"]
    assert kept.outcome == "fallback"
    assert kept.reason.endswith("fallback, the reranker failed")
    assert "model gone" in step.note


def test_scores_of_another_reranker_do_not_count() -> None:
    settings = Settings()
    hits = tuple(replace(Hit(Chunk(f"c{i}"), 1.4, i), rerank_score=0.9) for i in (1, 2))
    pool = Pool("q", "c", "l2", hits, reranker="cross_encoder:x")
    step = quality.apply(hits, LayerInput(settings, pool, compiled_rules(()).scan("q"), PUBLIC))
    assert [need.kind for need in step.needs] == ["rerank"]


def by_background(distances: list[float], **values: object) -> LayerOutput:
    """Adds 48 hits at 1.0 to the distances, so that the background is 1.0."""
    settings = Settings().with_values(
        {"quality.good_by": "background", **{f"quality.{name}": v for name, v in values.items()}}
    )
    near = tuple(Hit(Chunk(f"c{i}"), d, i) for i, d in enumerate(distances, start=1))
    far = tuple(Hit(Chunk(f"far{i}"), 1.0, i) for i in range(len(near) + 1, 51))
    pool = Pool("q", "c", "l2", near + far)
    return quality.apply(near, LayerInput(settings, pool, compiled_rules(()).scan("q"), PUBLIC))


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (3.0, 0.0), (3.0, -4.0), (0.1, -2.0)])
def test_inner_products_of_any_length_are_measured_alike(scale: float, shift: float) -> None:
    """The best at 0.5 and the background at 1.0: 0.8 of the way between is 0.9."""
    near = [0.5, 0.89, 0.91] + [1.0] * 47
    hits = tuple(Hit(Chunk(f"c{i}"), scale * d + shift, i) for i, d in enumerate(near, start=1))
    settings = Settings().with_values({"quality.good_by": "background", "quality.background_share": 0.8})
    inputs = LayerInput(settings, Pool("q", "c", "ip", hits), compiled_rules(()).scan("q"), PUBLIC)
    step = quality.apply(hits[:3], inputs)
    assert [hit.id for hit in step.hits] == ["c1", "c2"]
    assert "0.80 of the way to the background" in step.decisions[0].reason


@pytest.mark.parametrize(
    ("distances", "options", "kept"),
    [
        ([0.5, 0.8, 0.81], {}, ["c1", "c2"]),
        ([0.5, 0.8, 0.81], {"background_share": 0.5}, ["c1"]),
        # nothing among the first three stands out: looks at more
        ([0.9, 0.9, 0.9, 0.9, 0.7], {"reranker": "none"}, ["c5"]),
        ([0.81, 0.9], {"reranker": "none"}, []),
    ],
)
def test_good_is_what_stands_clear_of_the_background(
    distances: list[float], options: dict[str, object], kept: list[str]
) -> None:
    step = by_background(distances, **options)
    assert ids(step) == kept
    assert step.status == ("ok" if kept else "low_quality_results")


def test_nothing_is_offered_where_no_share_is_large_enough() -> None:
    hits = tuple(Hit(Chunk(f"c{i}"), 1.0, i) for i in range(1, 51))
    values = {"quality.enabled": True, "quality.good_by": "background", "quality.background_share": 1e-320}
    result = replay(Pool("q", "c", "l2", hits), Settings().with_values(values))
    assert not result.kept
    assert quality.SPEC.relax(result.trace("quality"), result) is None


# Most unrelated questions are above the tuned share, but few of the labelled ones.
@pytest.mark.parametrize(("share", "nearest"), [(0.6, 0.74), (0.8, 0.84)])
def test_noise_is_not_offered_where_nothing_is_kept(share: float, nearest: float, snapshot: SnapshotAssertion) -> None:
    hits = [Hit(Chunk(f"c{i}"), nearest if i == 1 else 1.0, i) for i in range(1, 51)]
    settings = Settings().with_values(
        {
            "quality.enabled": True,
            "quality.reranker": "none",
            "quality.good_by": "background",
            "quality.background_share": share,
        }
    )
    result = replay(Pool("q", "c", "l2", tuple(hits)), settings)
    assert not result.kept
    assert quality.SPEC.relax is not None
    assert quality.SPEC.relax(result.trace("quality"), result) == snapshot
