"""The features of a learned cutoff, calculated by hand."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from ragfilter.engine.pool import scan_rules
from ragfilter.layers.layer import LayerInput
from ragfilter.layers.strategies.calibrated import Floats, features, linked, same_type
from ragfilter.model import UNRESTRICTED, Chunk, Hit, Pool
from ragfilter.settings.schema import FEATURES, Settings


def hit(name: str, distance: float = 0.5, *, score: float | None = None, type: str = "") -> Hit:
    return Hit(Chunk(name, f"text of {name}", type=type), distance, 1, rerank_score=score)


def refer(name: str, *refs: str) -> Hit:
    return Hit(Chunk(name, "text", refs=refs), 0.5, 1)


def of(*hits: Hit) -> dict[str, Floats]:
    pool = Pool("a question", "here", "l2", hits)
    return features(hits, LayerInput(Settings(), pool, scan_rules(pool), UNRESTRICTED))


def test_the_links_of_a_hit_count_in_both_directions_and_once() -> None:
    hits = [refer("a"), refer("b", "c"), refer("c", "a", "b"), refer("d", "d", "elsewhere")]
    # A mean of 0.5: a is 0.5 before it, b 0.3, and c 0.1 behind.
    made = linked(hits, np.array([0.0, 0.2, 0.6, 1.2]))
    assert made == pytest.approx([-0.1 / sqrt(2), -0.1 / sqrt(2), (0.5 + 0.3) / sqrt(3), 0.0])


def test_kin_is_the_share_of_the_best_of_the_same_type_itself_left_out() -> None:
    types = ["operation", "operation", "schema", "guide", "schema"]
    assert same_type(types, [0, 1, 2, 3]) == pytest.approx([1 / 3, 1 / 3, 0, 0, 1 / 4])
    assert same_type(["schema"], [0]) == [0.0]


def test_every_feature_is_there_and_those_of_scores_only_where_there_are_any() -> None:
    assert of(hit("a", score=0.5), hit("b", 0.7, score=0.2)).keys() == FEATURES.keys()
    assert FEATURES.keys() - of(hit("a"), hit("b", 0.7)).keys() == {"score", "score_behind"}
