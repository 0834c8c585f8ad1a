"""The smallest change that brings a chunk back or drops it, calculated by hand; then its law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.replay import ReplayMemo, replay
from ragfilter.engine.whatif import find_changes, reword, why_no_change
from ragfilter.layers.registry import layer
from ragfilter.model import PUBLIC, Chunk, Hit, Pool, PoolResult
from ragfilter.settings.schema import Settings

CLIFFS = (0.100, 0.300, 0.340, 0.470, 0.510, 0.660, 0.700)
"""Gaps: 0.2 (skipped), 0.04, 0.13, 0.04, 0.15 (the largest), 0.04."""


def result(distances: tuple[float, ...], /, **settings: Any) -> PoolResult:
    hits = tuple(
        Hit(Chunk(f"c{rank}", text="words"), distance, rank) for rank, distance in enumerate(distances, start=1)
    )
    values = {"cutoff.max_results": 6, **settings}
    return replay(Pool("a question", "demo", "l2", hits, queries=1), Settings().with_values(values))


@pytest.mark.parametrize(
    ("chunk", "settings"),
    [
        # Without a cliff of 0.15 the fallback keeps up to 0.1 + 0.4; 0.66 needs an offset of 0.56.
        ("c6", {}),
        # Rank 7 is beyond k and after the cliff: no single setting brings it back.
        ("c7", {}),
        # With k 5 the cliff of 0.13 after hit 3 is the largest. The cliff of 0.15 remains up to a threshold of 0.150;
        # the fallback then ends at 0.5. 26 tokens a chunk, with its number and its title, make a context budget of 129.
        ("c5", {}),
        ("c4", {"cutoff.gap_threshold": 0.3, "cutoff.distance_offset": 0.3}),
    ],
    ids=["c6", "c7", "c5", "c4"],
)
def test_the_smallest_changes(chunk: str, settings: dict[str, Any], snapshot: SnapshotAssertion) -> None:
    made = find_changes(result(CLIFFS, **settings), chunk)
    assert [(c.words, c.came, c.went) for c in made] == snapshot


def test_a_rule_misses_a_term_that_the_question_can_name() -> None:
    rule = '{"contain_one_of": [["owl", "owlbear"], ["lair"]]}'
    hits = (Hit(Chunk("c1"), 0.1, 1), Hit(Chunk("c2", rule=rule), 0.12, 2))
    settings = Settings().with_values({"query_must.enabled": True})
    made = replay(Pool("owlbears", "demo", "l2", hits), settings)
    assert [hit.id for hit in made.kept] == ["c1"]
    added = reword(made, "c2")
    assert added is not None
    assert added.question == "owlbears owlbear lair"
    assert [c.words for c in find_changes(made, "c2")] == ["Switch Rules off"]
    assert reword(made, "c1") is None


def test_what_nothing_drops_is_pinned_or_beyond_every_limit() -> None:
    for settings, why in [
        ({"query_must.pin": True}, "It is pinned by Rules: rule holds: owlbear."),
        ({}, "No limit of an active layer drops it, even at its lowest or highest value."),
    ]:
        hits = (Hit(Chunk("c1", rule='{"contain": "owlbear"}'), 0.1, 1), Hit(Chunk("c2"), 0.2, 2))
        values = {"query_must.enabled": True, **settings}
        made = replay(Pool("an owlbear", "demo", "l2", hits), Settings().with_values(values))
        assert find_changes(made, "c1") == (), settings
        assert why_no_change(made, "c1") == why


def test_what_one_setting_cannot_bring_back_two_can() -> None:
    # Its rule drops the farther chunk; without rules, it is beyond 0.1 + 0.4 and after the cliff.
    hits = (Hit(Chunk("c1"), 0.1, 1), Hit(Chunk("c2"), 0.2, 2), Hit(Chunk("c3", rule='{"contain": "owlbear"}'), 0.9, 3))
    settings = Settings().with_values({"query_must.enabled": True})
    made = replay(Pool("a troll", "demo", "l2", hits), settings)
    (pair,) = find_changes(made, "c3")
    assert pair.words == "Switch Rules off and Min results 2 → 3"
    assert (pair.came, pair.went) == ((), ())
    settings = made.settings.with_values(pair.values)
    assert "c3" in [hit.id for hit in replay(made.pool, settings).kept]


def test_clearance_is_never_among_the_changes() -> None:
    hits = (Hit(Chunk("c1"), 0.1, 1), Hit(Chunk("c2", clearance=3), 0.12, 2))
    settings = Settings().with_values({"clearance.enabled": True})
    made = replay(Pool("a question", "demo", "l2", hits), settings, PUBLIC)
    assert find_changes(made, "c2") == ()
    assert reword(made, "c2") is None
    assert find_changes(made, "no such chunk") == ()


RANGES: dict[str, Sequence[float]] = {
    "cutoff.max_results": range(1, 51),
    "cutoff.min_results": range(21),
    "cutoff.jumps": range(1, 11),
    "cutoff.b_extra": range(21),
    "cutoff.gap_threshold": [n / 1000 for n in range(501)],
    "cutoff.distance_offset": [n / 1000 for n in range(1501)],
    "cutoff.tail": [n / 1000 for n in range(901)],
}
"""All values that are tried, except those of `relative`, which gap replaces here."""


@pytest.mark.slow
@examples(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(1, 150), min_size=5, max_size=9),
    st.sampled_from(["gap", "autocut", "fixed", "adaptive_k", "car", "otsu", "spike"]),
    st.integers(0, 8),
    st.integers(1, 9),
)
@example([200, 100, 10, 10, 200, 200, 10], "autocut", 4, 4)
def test_every_change_does_what_it_says_and_none_is_smaller(
    steps: list[int], strategy: str, chosen: int, k: int
) -> None:
    distances = tuple(sum(steps[: i + 1]) / 1000 for i in range(len(steps)))
    made = result(distances, **{"cutoff.strategy": strategy, "cutoff.max_results": k})
    chunk = f"c{1 + chosen % len(steps)}"
    before = {hit.id for hit in made.kept}
    found = {change.path: change for change in find_changes(made, chunk, most=len(RANGES))}
    for change in found.values():
        after = replay(made.pool, made.settings.with_values(change.values))
        kept = {hit.id for hit in after.kept}
        assert (chunk in kept) is (chunk not in before)
        assert {*change.came} == kept - before - {chunk}
        assert {*change.went} == before - kept - {chunk}
    shared: ReplayMemo = {}
    for name in layer("cutoff").used(made.settings):
        path = f"cutoff.{name}"
        now = made.settings.get(path)
        turning = [
            abs(value - now)
            for value in RANGES.get(path, ())
            if (chunk in before)
            is not any(
                hit.id == chunk
                for hit in replay(made.pool, made.settings.with_values({path: value}), memo=shared, explain=False).kept
            )
        ]
        nearest = abs(found[path].new - now) if path in found else None
        assert nearest == (pytest.approx(min(turning)) if turning else None), path
