"""The map of gap threshold against offset keeps what `replay` keeps."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as how
from hypothesis import strategies as st

from ragfilter.evaluate.maps import figures, gap_cuts, pareto, rankings
from ragfilter.evaluate.sweep import sweep
from ragfilter.model import Chunk, Entity, Hit, Pool
from ragfilter.settings.config import load

THRESHOLDS, OFFSETS = (0.0, 0.05, 0.1, 0.3, 4.0), (0.0, 0.1, 0.25, 1.0)
FULL = load(profile="full", environ={}).settings
GAP = load(profile="adaptive-gap", environ={}).settings


def pool_of(steps: list[int], words: list[int]) -> Pool:
    distances = np.cumsum([8, *steps]) / 20
    hits = tuple(
        Hit(Chunk(f"c{i}", "word " * n, f"Troll {i}"), float(d), i)
        for i, (d, n) in enumerate(zip(distances, words, strict=False), 1)
    )
    sides = (Entity("Troll 2", tuple(h.id for h in hits[1:3])), Entity("Troll 4", ("c4",)))
    return Pool("Troll 2 vs Troll 4", "c", "l2", hits, entities=sides, exhaustive=True)


@how(max_examples=40)
@given(
    steps=st.lists(st.integers(0, 9), min_size=0, max_size=12),
    words=st.lists(st.integers(1, 90), min_size=13, max_size=13),
    k=st.integers(1, 9),
    least=st.integers(0, 4),
    profile=st.sampled_from([FULL, GAP]),
    budget=st.sampled_from([100, 300, 4000]),
    skip=st.booleans(),
)
def test_it_is_what_replay_keeps(
    steps: list[int], words: list[int], k: int, least: int, profile: object, budget: int, skip: bool
) -> None:
    settings = (FULL if profile is FULL else GAP).with_values(
        {
            "cutoff.strategy": "gap",
            "cutoff.max_results": k,
            "cutoff.min_results": least,
            "cutoff.skip_first": skip,
            "quality.reranker": "none",
            "context.max_context_tokens": budget,
        }
    )
    pools = {"q": pool_of(steps, words)}
    qrels = {"q": {"c1": 1, "c3": 2, "c5": 0, "elsewhere": 1}}
    pairs = list(product(THRESHOLDS, OFFSETS))
    asked = [settings.with_values({"cutoff.gap_threshold": t, "cutoff.distance_offset": o}) for t, o in pairs]
    theirs = sweep(pools, qrels, asked)
    ranked = rankings(pools, qrels, settings)
    ours = figures(ranked, gap_cuts(ranked, settings.cutoff, THRESHOLDS, OFFSETS))
    assert ours.keys() == theirs.keys()
    for name, means in ours.items():
        assert means.ravel().tolist() == pytest.approx(theirs[name][0].tolist()), name


def test_an_empty_pool_and_one_without_relevant_chunks() -> None:
    empty = replace(pool_of([], []), hits=(), entities=())
    pools = {"empty": empty, "none": pool_of([1, 1], [1] * 3)}
    ranked = rankings(pools, {"empty": {"c1": 1}, "none": {"c1": 0}}, GAP)
    made = figures(ranked, gap_cuts(ranked, GAP.cutoff, [0.1], [0.4]))
    assert made["f1"][0, 0] == 0.0
    assert made["recall"][0, 0] == 0.5


def test_the_front_holds_what_no_other_beats() -> None:
    recall = np.array([[0.2, 0.5, 0.5], [0.9, 0.4, 0.9]])
    tokens = np.array([[100.0, 300, 200], [800, 250, 700]])
    assert pareto(recall, tokens) == [0, 2, 5]
