"""A law: cached steps of layers under some settings change nothing under others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragfilter.engine.replay import Replays, replay, replay_as_user
from ragfilter.layers.registry import SWITCHES
from ragfilter.layers.strategies.strategy import strategies
from ragfilter.model import Chunk, Entity, Hit, Pool, PoolResult, User
from ragfilter.settings.config import load
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings

RULES = (None, '{"contain": "troll"}', '{"contain": "ogre"}')
HITS = tuple(
    Hit(
        Chunk(
            f"c{n}",
            f"the troll of the year {n} fights {'an ogre' if n % 3 else 'alone'}",
            title=f"Troll {n}",
            rule=RULES[n % 3],
            clearance=n % 4,
            refs=(f"c{n + 1}",),
        ),
        0.3 + (n * n) / 4000,
        n + 1,
        "entity:ogre" if n > 55 else "query",
        (n * 7 % 60) / 60,
    )
    for n in range(60)
)
POOL = Pool(
    "troll vs ogre 17",
    "c",
    "l2",
    HITS,
    exhaustive=True,
    reranker="late_interaction",
    entities=(Entity("troll", ("c3", "c1")), Entity("ogre", ("c57", "c58"))),
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        **{f"{name}.enabled": st.booleans() for name in SWITCHES},
        "retrieval.k": st.sampled_from([3, 15]),
        "retrieval.pool_size": st.sampled_from([50, 60]),
        # A learned strategy needs a calibration.
        "cutoff.strategy": st.sampled_from([s.name for s in strategies().values() if s.values_of is None]),
        "cutoff.max_results": st.sampled_from([4, 20]),
        "quality.mode": st.sampled_from(["when_poor", "always"]),
        "quality.reranker": st.sampled_from(["none", "late_interaction"]),
        "words.weight": st.sampled_from([0.0, 1.5]),
        "query_must.pin": st.booleans(),
        "entities.per_entity": st.sampled_from([1, 2]),
        "context.max_context_tokens": st.sampled_from([60, 4000]),
    },
)
SETTINGS = st.builds(
    lambda profile, values: load(profile=profile, environ={}).settings.with_values(values),
    st.sampled_from(list(PROFILES)),
    VALUES,
)


POOLS = (POOL, replace(POOL, query="How old is an ogre?", entities=()))
ASKED = st.tuples(st.sampled_from(POOLS), SETTINGS, st.sampled_from([0, 2]))


def timeless(result: PoolResult) -> PoolResult:
    return replace(result, traces=tuple(replace(trace, ms=0.0) for trace in result.traces))


@given(st.lists(ASKED, min_size=2, max_size=6), st.sampled_from((4, 300)))
@settings(max_examples=40)
def test_steps_shared_between_replays_change_nothing(asked: list[tuple[Pool, Settings, int]], most: int) -> None:
    replays = Replays()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragfilter.engine.replay.MAX_STEPS", most)
        for pool, each, level in asked:
            shared, alone = replays.of(pool, each, User(level)), replay(pool, each, User(level))
            assert timeless(shared) == timeless(alone)
            assert timeless(replays.as_user(shared)) == timeless(replay_as_user(alone))


def test_a_later_setting_decides_no_earlier_layer_again() -> None:
    full, replays = load(profile="full", environ={}).settings, Replays()
    first = replays.of(POOL, full, User())
    again = replays.of(POOL, full.with_values({"cutoff.max_results": 2}), User())
    same = {
        one.layer
        for one, two in zip(first.traces, again.traces, strict=True)
        if one.decisions is two.decisions and one.enabled
    }
    assert {"clearance", "query_must", "quality"} <= same
    assert "cutoff" not in same
