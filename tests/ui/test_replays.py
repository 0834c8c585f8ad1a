"""Caching steps in a session does not change its replays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.engine import replay as replays
from ragfilter.engine.replay import Replays, as_user, replay
from ragfilter.model import Chunk, Hit, Pool, PoolResult, User
from ragfilter.settings.profiles import profile
from ragfilter.settings.schema import Settings

RULES = (None, '{"contain_one_of": [["troll"]]}', '{"contain_one_of": [["dragon"]]}')
USERS = (User(), User(level=1), User(level=9))


def pool(query: str) -> Pool:
    hits = tuple(
        Hit(
            Chunk(f"c{i}", title=f"Troll {i}", text="A troll hits.", rule=RULES[i % 3],
                  clearance=i % 2),
            0.1 + 0.02 * i, i,
        )
        for i in range(1, 31)
    )  # fmt: skip
    return Pool(query, "demo", "l2", hits, queries=1)


POOLS = (pool("How does a troll fight?"), pool("How old is a dragon?"))
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "cutoff.max_results": st.integers(1, 9),
        "cutoff.gap_threshold": st.sampled_from((0.01, 0.1)),
        "query_must.enabled": st.booleans(),
        "clearance.enabled": st.booleans(),
        "words.enabled": st.booleans(),
        "retrieval.k": st.integers(3, 40),
    },
)
ASKED = st.tuples(st.sampled_from(POOLS), st.sampled_from(("full", "adaptive-gap")), CHANGES,
                  st.sampled_from(USERS))  # fmt: skip


def timeless(result: PoolResult) -> PoolResult:
    return replace(result, traces=tuple(replace(trace, ms=0.0) for trace in result.traces))


@pytest.mark.slow
@given(asked=st.lists(ASKED, min_size=2, max_size=8), most=st.sampled_from((4, 300)))
def test_every_replay_is_what_it_would_be_alone(
    asked: list[tuple[Pool, str, dict[str, object], User]], most: int
) -> None:
    kept, before = Replays(), replays.MAX_REPLAYS
    replays.MAX_REPLAYS = most
    try:
        for found, name, changes, user in asked:
            settings = Settings().with_values({**profile(name).values, **changes})
            result = kept.of(found, settings, user)
            alone = replay(found, settings, user)
            assert timeless(result) == timeless(alone)
            assert timeless(kept.as_user(result)) == timeless(as_user(alone))
    finally:
        replays.MAX_REPLAYS = before


def test_a_later_setting_decides_no_earlier_layer_again() -> None:
    kept, settings = Replays(), Settings().with_values(profile("full").values)
    first = kept.of(POOLS[0], settings, User())
    again = kept.of(POOLS[0], settings.with_values({"cutoff.max_results": 2}), User())
    names = [trace.layer for trace in first.traces]
    same = {
        one.layer for one, two in zip(first.traces, again.traces, strict=True)
        if one.decisions is two.decisions and one.enabled
    }  # fmt: skip
    assert {"clearance", "query_must", "quality"} <= same
    assert "cutoff" in names
    assert "cutoff" not in same
