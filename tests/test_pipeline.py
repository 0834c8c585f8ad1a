"""replay: the order of the layers, nothing disappears without a reason, and it is pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.engine.pool import unfiltered
from ragfilter.engine.replay import replay
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Chunk, Entity, Hit, Pool
from ragfilter.settings.config import load
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings

RULES = [None, '{"contain":"cleric"}', '{"contain":"wizard"}', "{not json", '{"nope":1}']


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    n = draw(st.integers(0, 40))
    distances = sorted(draw(st.lists(st.floats(0, 4), min_size=n, max_size=n)))
    hits = tuple(
        Hit(
            Chunk(
                f"c{i}",
                text=draw(st.sampled_from(["", "troll", "a longer text about a troll " * 20])),
                title=f"title {i}",
                clearance=draw(st.sampled_from([0, 0, 0, 1, 3, None])),
                department=draw(st.sampled_from([None, None, "referee"])),
                rule=draw(st.sampled_from(RULES)),
            ),
            distance,
            i,
            found_by=draw(st.sampled_from(["query", "query", "query", "entity:troll"])),
            rerank_score=draw(st.one_of(st.none(), st.floats(0, 1))),
        )
        for i, distance in enumerate(distances, start=1)
    )
    some = tuple(hit.id for hit in hits[: draw(st.integers(0, 5))])
    entities = (Entity("troll", some),) if some else ()
    reranker = draw(st.sampled_from(["", "late_interaction"]))
    return Pool("a cleric vs a troll", "c", "l2", hits, entities, reranker=reranker)


@st.composite
def any_settings(draw: st.DrawFn) -> Settings:
    name = draw(st.sampled_from(sorted(PROFILES)))
    settings = load(profile=name, environ={}).settings
    switches = ("clearance", "query_must", "entities", "quality", "cutoff", "diversity", "judge")
    return settings.with_values({f"{s}.enabled": draw(st.booleans()) for s in switches})


@pytest.mark.slow
@given(pools(), any_settings())
@hypothesis.settings(max_examples=40)
def test_every_hit_is_kept_or_has_a_reason_to_be_gone(pool: Pool, settings: Settings) -> None:
    result = replay(pool, settings)
    kept = {hit.id for hit in result.kept}
    assert len(kept) == len(result.kept)
    outcomes = result.outcomes()
    for hit in result.hits:
        decision = outcomes.get(hit.id)
        if hit.id in kept:
            assert decision is not None
            assert decision.outcome != "dropped"
        else:
            assert decision is not None
            assert decision.outcome == "dropped"
            assert decision.reason


@given(pools(), any_settings())
@hypothesis.settings(max_examples=40)
def test_the_counts_of_neighbouring_layers_agree(pool: Pool, settings: Settings) -> None:
    traces = replay(pool, settings).traces
    assert [t.layer for t in traces] == [layer.name for layer in LAYERS]
    for left, right in pairwise(traces):
        assert left.n_out == right.n_in
    assert all(t.n_in == t.n_out for t in traces if not t.enabled)


@pytest.mark.slow
@given(pools(), any_settings())
def test_what_clearance_drops_no_later_layer_sees(pool: Pool, settings: Settings) -> None:
    settings = settings.with_values({"clearance.enabled": True})
    result = replay(pool, settings)
    hidden = {d.chunk_id for d in result.trace("clearance").decisions if d.outcome == "dropped"}
    for trace in result.traces[1:]:
        assert hidden.isdisjoint(d.chunk_id for d in trace.decisions)
    for need in result.needs:
        assert hidden.isdisjoint(need.chunk_ids)
    assert hidden.isdisjoint(hit.id for hit in unfiltered(pool, settings))


def plain(*distances: float) -> Pool:
    hits = tuple(Hit(Chunk(f"c{i}", "text"), d, i) for i, d in enumerate(distances, start=1))
    return Pool("beholder", "c", "l2", hits)


def test_the_seeds_beholders_through_the_whole_pipeline() -> None:
    settings = load(profile="adaptive-gap", environ={}).settings
    result = replay(plain(0.12, 0.18, 0.22, 0.35, 0.50), settings)
    assert [hit.id for hit in result.kept] == ["c1", "c2", "c3", "c4"]
    assert result.outcomes()["c5"].layer == "cutoff"


def test_entity_hits_count_only_with_the_switch_on() -> None:
    pool = plain(0.1, 0.2)
    troll = Hit(Chunk("t", "troll", "Troll"), 0.9, 3, found_by="entity:troll")
    pool = replace(pool, hits=(*pool.hits, troll), entities=(Entity("troll", ("t",)),))
    off = replay(pool, Settings())
    on = replay(pool, Settings().with_values({"entities.enabled": True}))
    assert [hit.id for hit in off.hits] == ["c1", "c2"]
    assert on.kept[0].id == "t"
