"""The map of a sweep: its axes, the current place, and the settings of a place."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import numpy as np
import pytest

from ragfilter.errors import InputError
from ragfilter.evaluate.maps import OFFSET, THRESHOLD, axes, make
from ragfilter.layers.quality import reranker_key
from ragfilter.model import PUBLIC, Chunk, Failure, Hit, Pool
from ragfilter.settings.config import load
from ragfilter.ui.tune import tuning_map

BUDGET = "context.max_context_tokens"
GAP = load(profile="adaptive-gap", environ={}).settings
POOLS = {
    "q": Pool(
        "q",
        "c",
        "l2",
        tuple(Hit(Chunk(f"c{i}", f"text {i}"), d, i) for i, d in enumerate((0.5, 0.55, 0.8, 0.9), 1)),
        exhaustive=True,
    )
}
QRELS = {"q": {"c1": 1, "c2": 1}}


def test_axes_are_the_numbers_that_act() -> None:
    assert axes(GAP)[:2] == [THRESHOLD, OFFSET]
    assert "cutoff.jumps" not in axes(GAP)
    assert "cutoff.jumps" in axes(GAP.with_values({"cutoff.strategy": "autocut"}))
    assert axes(GAP.with_values({"cutoff.enabled": False})) == ["retrieval.k", BUDGET]
    full = load(profile="full", environ={}).settings
    with_quality = axes(GAP.with_values({"quality.enabled": True}))
    assert any(path.startswith("quality.") for path in with_quality)
    assert not any(path.startswith(("clearance.", "judge.")) for path in axes(full))


def test_one_setting_is_a_line_through_more_values() -> None:
    share = GAP.with_values({"cutoff.strategy": "relative"})
    made = make(POOLS, QRELS, share, PUBLIC, "cutoff.relative_offset", "")
    assert len(made.xs) == 31
    drawn = tuning_map.heatmap(made, "f1", 0, 1, dark=False)["data"][0]
    assert (drawn["mode"], drawn["y"]) == ("lines+markers", made.figures["f1"].ravel().tolist())


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("quality.min_top_k", ""),
        ("quality.max_top_k", "quality.min_top_k"),
        ("quality.max_top_k", "cutoff.max_results"),
    ],
)
def test_values_that_exclude_each_other_are_left_out(x: str, y: str) -> None:
    settings = load(profile="full", environ={}).settings.with_values({"cutoff.enabled": True})
    made = make(POOLS, QRELS, settings, PUBLIC, x, y)
    assert made.places
    assert "left out" in made.left_out
    for place in made.places:
        there = settings.with_values(made.values(place))
        assert there.quality.min_top_k <= there.quality.max_top_k
    here, best = made.nearest(settings), made.highest("f1")
    assert made.holds(settings)
    assert {here, best, *made.front()} <= set(made.places)
    squares, colours, *_ = tuning_map.heatmap(made, "f1", here, best, dark=False)["data"]
    assert squares["customdata"] == made.places
    assert np.isfinite(squares["y"]).all()
    assert not y or np.isfinite(colours["z"]).sum() == len(made.places)
    points = tuning_map.front(made, here, best, dark=False)["data"][0]
    assert np.isfinite([points["x"], points["y"]]).all()


def test_the_points_of_the_map_name_their_place_and_lie_on_its_colours() -> None:
    made = make(POOLS, QRELS, GAP, PUBLIC, THRESHOLD, OFFSET)
    flat = made.figures["f1"].ravel()
    plot = tuning_map.heatmap(made, "f1", made.nearest(GAP), int(np.argmax(flat)), dark=False)
    points, colours, *_ = plot["data"]
    assert points["customdata"] == list(range(flat.size))
    at = {
        (x, y): z
        for x, row in zip(colours["x"], zip(*colours["z"], strict=True), strict=True)
        for y, z in zip(colours["y"], row, strict=True)
    }
    assert [at[each] for each in zip(points["x"], points["y"], strict=True)] == flat.tolist()
    front = tuning_map.front(made, 0, 1, dark=True)["data"][1]
    assert front["x"] == sorted(front["x"])
    assert front["y"] == sorted(front["y"])


def test_places_without_rerank_scores_have_no_figures() -> None:
    """Distances would replace the scores there, and Inspect would show something else."""
    poor = GAP.with_values({"quality.enabled": True, "quality.mode": "when_poor"})
    axis = "quality.score_threshold"
    made = make(POOLS, QRELS, poor, PUBLIC, axis, "")
    n = len(made.xs)
    # The best similarity is 1 − 0.5 / 2 = 0.75, so from there on the matches are poor.
    lacking = [x for x, f1 in zip(made.xs, made.figures["f1"].ravel(), strict=True) if isnan(f1)]
    assert lacking == [x for x in made.xs if x > 0.75]
    assert len(made.places) == n - len(lacking)
    assert f"{len(lacking)} left out" in made.left_out
    key = reranker_key(poor.quality)
    scored = replace(POOLS["q"], hits=tuple(replace(hit, rerank_score=0.9) for hit in POOLS["q"].hits), reranker=key)
    assert make({"q": scored}, QRELS, poor, PUBLIC, axis, "").left_out == ""
    failed = replace(POOLS["q"], failures=(Failure("rerank", key, "it is gone"),))
    with pytest.raises(InputError, match="Reranking failed: it is gone"):
        make({"q": failed}, QRELS, poor, PUBLIC, axis, "")
