"""gather with a real Chroma: the re-query loop, reaching k, and sliders, which must not search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import N, OneVector, filled, large, unit

from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Rounds, User
from ragfilter.protocols import Vectors
from ragfilter.rules.match import CompiledRules
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings
from ragfilter.stores.chroma import ChromaStore
from ragfilter.stores.copies import StoredRow

TERMS = ["cleric", "druid", "armor class 6", "ac 6", "wizard", "10", "troll"]
QUERY_MUST = load(profile="query-must", environ={}).settings


def literal_loop(
    raw: Any, vector: Vectors, passes: Mapping[str, bool], k: int, max_rounds: int
) -> list[tuple[set[str], set[str], set[str]]]:
    """The source's loop against the store: ask, exclude everything seen, ask again."""
    seen: list[str] = []
    kept = 0
    rounds = []
    while len(rounds) < max_rounds:
        where = {"id": {"$nin": seen}} if seen else None
        found = raw.query(query_embeddings=[vector], n_results=k, where=where)["ids"][0]
        if not found:
            break
        ok = {i for i in found if passes[i]}
        rounds.append((set(found), set(found) - ok, ok))
        seen += found
        kept += len(ok)
        if kept >= k or len(ok) == len(found):
            break
    return rounds


rules = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "contain_one_of": st.lists(
                st.lists(st.sampled_from(TERMS), min_size=1, max_size=3), min_size=1, max_size=2
            ),
            "contain_all_of": st.lists(st.sampled_from(TERMS), min_size=1, max_size=2),
            "contain": st.sampled_from(TERMS),
            "contain_none_of": st.lists(st.sampled_from(TERMS), min_size=1, max_size=2),
            "match": st.sampled_from(["word", "substring"]),
        },
    ).map(json.dumps),
)
queries = st.lists(st.sampled_from([*TERMS, "a 7th level", "needs"]), min_size=1, max_size=4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(rules, min_size=N, max_size=N),
    queries.map(" ".join),
    st.integers(1, 15),
    st.integers(1, 5),
    st.integers(0, 1000),
)
def test_the_replayed_rounds_equal_the_real_loop(
    store: ChromaStore, chunk_rules: list[str | None], query: str, k: int, max_rounds: int, seed: int
) -> None:
    raw, vector = filled(store, chunk_rules, seed)
    scan = CompiledRules([r for r in chunk_rules if r]).scan(query)
    passes = {f"c{i}": scan.passes(rule) for i, rule in enumerate(chunk_rules)}
    chosen = QUERY_MUST.with_values({"retrieval.k": k, "query_must.max_rounds": max_rounds})
    backends = Backends(store.collection("loop"), OneVector({}, vector))
    result = replay(gather(query, chosen, backends), chosen)
    detail = result.trace("query_must").detail
    assert isinstance(detail, Rounds)
    replayed = [(set(r.retrieved), set(r.excluded), set(r.kept)) for r in detail.rounds]
    assert replayed == literal_loop(raw, vector, passes, k, max_rounds)

    # and beyond the loop: k clean chunks wherever there are k, the nearest ones, each once
    nearest = raw.query(query_embeddings=[vector], n_results=N)["ids"][0]
    clean = [i for i in nearest if passes[i]]
    assert [hit.id for hit in result.kept] == clean[:k]


@pytest.mark.parametrize("wide", [False, True])
def test_what_rules_pin_has_its_text_however_far_down_it_is(store: ChromaStore, wide: bool) -> None:
    vector = unit(np.random.default_rng(9), 1)[0]
    away = unit(np.random.default_rng(8), 1)[0]
    collection = store.create(f"pinned-{wide}", embedder="given")
    holds = '{"contain": "cleric"}'
    chunks = [Chunk("best", "Best.", refs=("c170",)), *(Chunk(f"c{i}", "Other.") for i in range(180))]
    chunks += [Chunk(f"rule-{i}", "Table.", rule=holds, refs=("best",)) for i in range(2)]
    collection.write([StoredRow(each, vector + away * i / 100) for i, each in enumerate(chunks)])
    chosen = load(profile="full", environ={}).settings
    result = search_and_filter("a cleric", chosen, Backends(collection, OneVector({}, vector)), wide=wide)
    texts = {hit.id: hit.chunk.text for hit in result.kept}
    assert {"best": "Best.", "rule-0": "Table.", "rule-1": "Table.", "c170": "Other."}.items() <= texts.items()


class Counting:
    """A fake collection that counts what it is asked."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self.inner, name)


def test_no_setting_needs_the_store_again(store: ChromaStore) -> None:
    _, vector = filled(store, [None, '{"contain":"cleric"}', '{"contain":"troll"}'] * 20, 3)
    counting = Counting(store.collection("loop"))
    chosen = load(profile="full", environ={}).settings
    pool = gather("cleric vs troll", chosen, Backends(counting, OneVector({}, vector)))
    asked = len(counting.calls)
    for path, value in [
        ("cutoff.gap_threshold", 0.2),
        ("cutoff.max_results", 50),
        ("cutoff.strategy", "autocut"),
        ("query_must.enabled", False),
        ("entities.per_entity", 50),
        ("entities.enabled", False),
        ("clearance.enabled", False),
        ("quality.enabled", False),
        ("retrieval.k", 50),
    ]:
        assert replay(pool, chosen.with_values({path: value})).hits
    assert len(counting.calls) == asked


def test_both_sides_of_a_comparison_get_their_own_retrieval(store: ChromaStore) -> None:
    rng = np.random.default_rng(9)
    vectors = unit(rng, 400)
    collection = store.create("giants", embedder="given")
    collection.write(
        [StoredRow(Chunk(f"c{i}", "some text", f"Title {i}"), v) for i, v in enumerate(vectors)]
        + [StoredRow(Chunk("troll", "It regenerates.", "Troll"), -vectors[0])]
    )
    # the query is near c0; the troll lies at the far end, beyond the pool
    embedder = OneVector({"troll": -vectors[0]}, vectors[0])
    chosen = load(profile="adaptive-gap+entities", environ={}).settings
    chosen = chosen.with_values({"retrieval.pool_size": 50})
    pool = gather("title 0 vs troll", chosen, Backends(collection, embedder))
    assert [e.name for e in pool.entities] == ["title 0", "troll"]
    troll = next(hit for hit in pool.hits if hit.id == "troll")
    assert troll.found_by == "entity:troll"
    assert troll.distance == pytest.approx(4.0, abs=1e-4)
    assert {"c0", "troll"} <= {hit.id for hit in replay(pool, chosen).kept}


@pytest.mark.parametrize(
    ("query", "level", "sides"),
    [
        ("ogre or troll", 2, ["ogre", "troll"]),
        ("ogre or troll", 1, []),  # the user must not learn that there is a chunk called Troll
        ("ogre or magic", 2, []),  # nothing is called Magic
        ("ogre or troll vs magic", 2, ["ogre or troll", "magic"]),
    ],
)
def test_x_or_y_compares_only_what_chunks_are_called(
    store: ChromaStore, query: str, level: int, sides: list[str]
) -> None:
    vectors = unit(np.random.default_rng(9), 4)
    name = f"{query}-{level}".replace(" ", "-")
    collection = store.create(name, embedder="given")
    titled = [("ogre", "Ogre", 0), ("troll", "Troll", 2), ("spell", "White Magic", 0)]
    collection.write(
        [
            StoredRow(Chunk(i, "some text", title, clearance=needed), vector)
            for (i, title, needed), vector in zip(titled, vectors, strict=False)
        ]
    )
    chosen = load(profile="adaptive-gap+entities", environ={}).settings
    chosen = chosen.with_values({"clearance.enabled": True})
    pool = gather(query, chosen, Backends(collection, OneVector({}, vectors[0])), User(level))
    assert [entity.name for entity in pool.entities] == sides


def test_push_down_still_says_that_the_clearance_is_insufficient(store: ChromaStore) -> None:
    if "vault" in [info.name for info in store.collections()]:
        store.delete("vault")
    vectors = unit(np.random.default_rng(2), 5)
    collection = store.create("vault", embedder="given")
    collection.write([StoredRow(Chunk(f"c{i}", "hush", clearance=i + 1), v) for i, v in enumerate(vectors)])
    chosen = Settings().with_values({"clearance.enabled": True})
    backends = Backends(collection, OneVector({}, vectors[0]))
    result = search_and_filter("q", chosen, large(backends))
    assert result.status == "insufficient_clearance"
    assert "5" in result.message
    assert {hit.chunk.text for hit in result.pool.hits} == {""}
