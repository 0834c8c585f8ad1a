"""Hits with several named scores, as from a hybrid search, in library and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import ragfilter as rf
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.sweep import kept, plan
from ragfilter.evaluate.tuning import recorded
from ragfilter.model import Pool, Score
from ragfilter.results.thresholds import compared

QUERY = "How strong is a troll?"
DENSE = {"a": 0.2, "c": 0.3, "d": 0.9}
LEXICAL = {"b": 12.0, "c": 3.0, "a": 1.0}
METRIC = {"dense": "cosine", "lexical": "rank"}
FUSED = "acbd"
"""The order of the hits as reciprocal ranks fuse them."""


def hits(ids: str = FUSED) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"Trolls, part {i}.", "scores": {"dense": DENSE.get(i)}} for i in ids]


def columns(*names: str) -> dict[str, list[float | None]]:
    every: Mapping[str, Mapping[str, float]] = {"dense": DENSE, "lexical": LEXICAL}
    return {name: [every[name].get(i) for i in FUSED] for name in names}


def filtered(score: str = "", **values: Any) -> rf.Filter:
    settings = rf.Filter("adaptive-gap").settings
    paths = {f"cutoff.{name}": value for name, value in values.items()}
    return rf.Filter(settings.with_values({"cutoff.score": score, **paths}))


def test_the_cutoff_cuts_by_the_score_that_is_named() -> None:
    for names, score, most, expected, why in [
        (("dense", "lexical"), "", 5, "ac", "gap 0.600 ≥ 0.100 after hit 2"),
        (("dense", "lexical"), "dense", 5, "ac", "gap 0.600 ≥ 0.100 after hit 2"),
        (("lexical",), "", 3, "acb", "first 3; the store gives no scores to find a cliff in"),
        (("dense", "lexical"), "lexical", 2, "bc", "first 2; lexical scores only give an order"),
        (("dense",), "mine", 5, "ac", "after hit 2; no hit has a score named mine"),
    ]:
        metric = {name: METRIC[name] for name in names}
        flt = filtered(score, max_results=most)
        result = flt(QUERY, hits(), columns(*names), metric=metric)
        assert "".join(hit.id for hit in result) == expected
        assert result.trace("cutoff").note.endswith(why)


def test_each_search_has_its_own_limit() -> None:
    for limits, expected, reason in [
        # Only words found b, at their first place.
        ("dense=0.25", "ab", "dense 0.300 > 0.250"),
        ("dense=0.25, lexical=2", "acb", "dense 0.900 > 0.250"),
        ("lexical=1", "bd", "lexical 3.000 > 1.000"),
        ("mine=0.1", "acbd", ""),
    ]:
        flt = filtered(strategy="fixed", limits=limits)
        result = flt(QUERY, hits(), columns("dense", "lexical"), metric=METRIC)
        assert {hit.id for hit in result} == {*expected}
        dropped = [row for row in result.dropped if row.setting == "cutoff.limits"]
        assert len(dropped) == len(FUSED) - len(expected)
        assert not reason or dropped[0].reason == reason
        unknown = ["No hit has a score named 'mine', so its limit has no effect. Named scores here: dense, lexical."]
        assert list(result.warnings) == (unknown if "mine" in limits else [])
        ((swept, _),) = kept(result.pool, plan([flt.settings]))
        assert swept == result.kept, limits


@pytest.mark.parametrize("limits", ["dense", "=0.5", "dense=nan", "dense=0.5 dense=0.7"])
def test_limits_that_cannot_be_read_are_refused(limits: str) -> None:
    with pytest.raises(ValueError, match="must name scores"):
        filtered(limits=limits)


def test_distances_tuned_on_one_score_are_refused_for_another() -> None:
    tuned = recorded(filtered("dense").settings, [Pool(QUERY, "", "cosine", ())], Provenance())
    flt = rf.Filter(tuned.with_values({"cutoff.score": "fused"}))
    given = columns("dense") | {"fused": columns("lexical")["lexical"]}
    with pytest.raises(SettingsError, match="the score dense, not fused"):
        flt(QUERY, hits(), given, metric={"dense": "cosine", "fused": "rank"})


def test_a_score_of_ones_own_has_a_curve_and_thresholds_on_its_scale() -> None:
    mine = [0.9, 0.3, 0.88, 0.1]
    result = filtered("mine")(QUERY, hits(), {"mine": mine}, metric={"mine": "similarity"})
    assert [hit.id for hit in result] == ["a", "b"]
    unit, values = compared(result, result.trace("cutoff").detail)  # type: ignore[arg-type]
    assert unit == "distance by mine"
    assert values == pytest.approx({"a": 0.1, "b": 0.12, "c": 0.7, "d": 0.9})
    assert result.dropped[0].reason == "after the cliff: gap 0.580 ≥ 0.100 after hit 2"


def test_a_hit_says_which_search_found_it_at_which_rank() -> None:
    result = filtered()(QUERY, hits(), columns("dense", "lexical"), metric=METRIC)
    by_id = {hit["id"]: hit["scores"] for hit in result.to_dict()["hits"]}
    assert by_id["b"] == {"lexical": {"value": 12.0, "metric": "rank", "rank": 1}}
    assert by_id["c"]["dense"] == {"value": 0.3, "metric": "cosine", "rank": 2}
    assert result.hits[-1].distance == 0.9, "as far as the farthest that the search found"


def test_hits_bring_their_own_scores_and_one_found_twice_has_those_of_both() -> None:
    twice = [{"id": "a", "text": "Trolls.", "scores": {"dense": 0.2}}, {"id": "a", "text": "Trolls.", "lexical": 7.0}]
    (hit,) = filtered()(QUERY, twice, metric=METRIC)
    assert hit.scores == {"dense": Score(0.2, "cosine", 1), "lexical": Score(7.0, "rank", 1)}


@pytest.mark.parametrize(
    ("scores", "metric", "wrong"),
    [
        ({"mine": [1.0] * 4}, METRIC, "The score 'mine' has no metric."),
        ({"mine": [1.0]}, {"mine": "rank"}, "1 score for 4 documents."),
        ({"mine": [1.0] * 4}, {"mine": "bm25"}, "There is no metric 'bm25'."),
    ],
)
def test_what_is_wrong_with_named_scores_is_said(scores: Any, metric: Mapping[str, str], wrong: str) -> None:
    with pytest.raises(InputError, match=wrong):
        filtered()(QUERY, hits(), scores, metric=metric)


NAN = float("nan")


def test_named_scores_that_are_no_numbers_or_missing_are_told() -> None:
    for scores, metric, warnings in [
        ({"dense": [0.3, NAN, 0.7, 0.9]}, {"dense": "cosine"}, ["1 of 4 scores named 'dense' is not a number"]),
        ({"mine": [0.3, NAN, float("inf"), 0.9]}, {"mine": "rank"}, ["2 of 4 scores named 'mine' are not numbers"]),
        (None, {"dense2": "cosine"}, ["The metric of 'dense2' is cosine, but no document has it"]),
        ({"dense": [None] * 4}, METRIC, ["'dense' is cosine, but no document", "'lexical' is rank, but no document"]),
        # A search by words may find nothing, and each search has scores for its own hits only.
        ({"dense": [0.3, None, 0.7, 0.9]}, METRIC, []),
    ]:
        result = filtered()(QUERY, hits(), scores, metric=metric)
        assert len(result.warnings) == len(warnings)
        assert all(wanted in said for wanted, said in zip(warnings, result.warnings, strict=True))


def test_a_hidden_hit_changes_no_rank() -> None:
    seen = filtered()(QUERY, hits(), columns("dense", "lexical"), metric=METRIC).hits
    secret = {"id": "s", "text": "Secret.", "clearance": 4}
    scores = {"dense": [0.1, *columns("dense")["dense"]], "lexical": [99.0, *columns("lexical")["lexical"]]}
    found = filtered()(QUERY, [secret, *hits()], scores, metric=METRIC, user=rf.User()).hits
    assert [(h.id, h.scores) for h in found] == [(h.id, h.scores) for h in seen]


def test_dense_scores_that_are_no_numbers_leave_the_order() -> None:
    scores = {"dense": [float("nan")] * 4}
    result = filtered("", max_results=2)(QUERY, hits()[:4], scores, metric={"dense": "cosine"})
    assert len(result) == 2
    assert result.trace("cutoff").note.endswith("the store gives no scores to find a cliff in")
