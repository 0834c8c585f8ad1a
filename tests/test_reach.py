"""How many hits a query gathers: what the enabled layers need, with every way of searching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from stores import OneVector

from ragfilter.engine import gather as gathering
from ragfilter.engine import replay as replaying
from ragfilter.engine.gather import Backends, gather, usable_count, wanted_count
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.engine.replay import replay
from ragfilter.layers.layer import LayerInput, LayerOutput, LayerSpec, Mark
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Chunk, Hit, User
from ragfilter.protocols import Vectors, Where
from ragfilter.settings.config import load
from ragfilter.settings.profiles import PROFILES
from ragfilter.stores.chroma import ChromaCollection, ChromaStore
from ragfilter.stores.copies import StoredRow

N = 400
QUERY = "cleric 3"
RULES = (None, '{"contain":"cleric"}', '{"contain":"druid"}', None, '{"contain_one_of":[["3","7"]]}')
USERS = (User(), User(1, ("ops",)), User(2, ("ops", "hr")))


QUESTION = np.ones(8, dtype=np.float32) / np.float32(np.sqrt(8))
EMBEDDER = OneVector({}, QUESTION)


@dataclass
class Watched:
    """A collection that records its searches, their conditions, and which chunks were fetched."""

    there: ChromaCollection
    searches: list[int] = field(default_factory=list)
    conditions: list[Where | None] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        if name == "snapshot":
            raise AttributeError(name)
        return getattr(self.there, name)

    def nearest(self, vector: Vectors, n: int, **given: Any) -> list[tuple[str, float]]:
        self.searches.append(n)
        self.conditions.append(given.get("where"))
        return self.there.nearest(vector, n, **given)

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        self.fetched += ids
        return self.there.chunks(ids)


@pytest.fixture(scope="module")
def collection(store: ChromaStore) -> ChromaCollection:
    made = store.create("reach", embedder="given")
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(N, 8)).astype(np.float32) + 0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = [
        Chunk(
            f"c{i}",
            f"Text {i} of a cleric.",
            f"Title {i}",
            source=f"{i % 3}.md",
            clearance=(0, 0, 1, 2, None)[i % 5],
            rule=RULES[i % 11 % 5],
            department=(None, None, None, "ops", "hr")[i % 7 % 5],
        )
        for i in range(N)
    ]
    made.write([StoredRow(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)])
    made.set_content("x")
    return made


@pytest.mark.parametrize("user", USERS, ids=str)
@pytest.mark.parametrize("profile", [*PROFILES, "relative", "diversity"])
def test_every_road_keeps_the_same_chunks(
    collection: ChromaCollection, store: ChromaStore, monkeypatch: pytest.MonkeyPatch, profile: str, user: User
) -> None:
    settings = load(profile=profile if profile in PROFILES else "full", environ={}).settings
    settings = settings.with_values({"quality.reranker": "none", "clearance.enabled": True})
    if profile == "relative":
        settings = settings.with_values({"cutoff.strategy": "relative"})
    if profile == "diversity":
        # All are alike (1 of 9 runs), so that others take the places of the first 50.
        more = {"cutoff.enabled": False, "quality.enabled": False, "retrieval.k": 9}
        settings = settings.with_values(more | {"diversity.enabled": True, "diversity.max_similarity": 0.1})
    backends = Backends(collection, EMBEDDER)
    roads = {
        "wide": search_and_filter(QUERY, settings, backends, user, wide=True),
        "narrow": search_and_filter(QUERY, settings, backends, user),
    }
    monkeypatch.setattr(store, "catalogue_limit", N - 1)
    large = Watched(collection)
    roads |= {
        "large": search_and_filter(QUERY, settings, Backends(large, EMBEDDER), user),
        "large, wide": search_and_filter(QUERY, settings, Backends(large, EMBEDDER), user, wide=True),
    }
    kept = {name: [hit.id for hit in result.kept] for name, result in roads.items()}
    assert kept["wide"]
    assert all(ids == kept["wide"] for ids in kept.values()), kept
    # The rules of the whole collection decide as those of the pool do.
    for result in roads.values():
        assert result.traces == replay(result.pool, settings, user).traces
    assert all(user.sees(hit.chunk) for result in roads.values() for hit in result.kept)
    assert all(hit.chunk.text for result in roads.values() for hit in result.kept)
    # Without a catalogue, no hidden chunk leaves the store.
    assert all(where is not None and where.user == user for where in large.conditions)


REACHES = {
    "unfiltered": (15, 50, 15),
    "adaptive-gap": (5, 50, 5),
    "adaptive-gap+entities": (5, 50, 5),
    "adaptive-retrieval": (10, 50, 69),
    "query-must": (15, 50, 45),
    "llm-filter": (40, 50, 40),
    "full": (50, 50, 390),
    "short-answers": (50, 50, 390),
}


def test_the_reach_of_each_profile(collection: ChromaCollection) -> None:
    """What a built-in profile needs, so that no layer slows down others unnoticed: how many clean
    chunks it uses, how many the page wants, and how many hits it gathers at first."""
    for profile in PROFILES:
        settings = load(profile=profile, environ={}).settings
        watched = Watched(collection)
        user = User(9) if settings.clearance.enabled else None
        gather("cleric", settings, Backends(watched, EMBEDDER), user, wide=False)
        assert (usable_count(settings), wanted_count(settings), watched.searches[0]) == REACHES[profile]


def _drop_short(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    return LayerOutput(tuple(hit for hit in hits if len(hit.chunk.text) >= 100))


@pytest.fixture
def lengths(store: ChromaStore) -> ChromaCollection:
    """200 chunks, of which the nearest 60 are short; every third has a rule that does not hold."""
    if "lengths" in [info.name for info in store.collections()]:
        store.delete("lengths")
    made = store.create("lengths", embedder="given")
    rows = []
    for i in range(200):
        vector = QUESTION.copy()
        vector[0] += 0.01 * i
        rule = '{"contain":"druid"}' if i % 3 == 1 else None
        chunk = Chunk(f"c{i:03d}", "short" if i < 60 else "long " * 30, rule=rule)
        rows.append(StoredRow(chunk, vector / np.linalg.norm(vector)))
    made.write(rows)
    made.set_content("x")
    return made


@pytest.mark.parametrize("before", ["query_must", "cutoff"])
@pytest.mark.parametrize("profile", ["query-must", "full"])
def test_a_layer_that_does_not_say_how_far_it_looks_gets_the_pages_pool_with_texts(
    lengths: ChromaCollection, monkeypatch: pytest.MonkeyPatch, profile: str, before: str
) -> None:
    short = LayerSpec("short", "Short", Mark("-", "circle", "#000000", "#ffffff"), _drop_short)
    place = [layer.name for layer in LAYERS].index(before)
    for module in (gathering, replaying):
        monkeypatch.setattr(module, "LAYERS", (*LAYERS[:place], short, *LAYERS[place:]))
    settings = load(profile=profile, environ={}).settings
    settings = settings.with_values({"quality.enabled": False, "retrieval.pool_size": 100})
    backends = Backends(lengths, EMBEDDER)
    wide = search_and_filter("cleric", settings, backends, User(1), wide=True)
    narrow = search_and_filter("cleric", settings, backends, User(1))
    assert wide.kept[0].id == "c060"
    assert [hit.id for hit in narrow.kept] == [hit.id for hit in wide.kept]
    assert all(hit.chunk.text for hit in (*wide.kept, *narrow.kept))


def test_a_user_is_searched_for_once_and_nothing_hidden_is_fetched(collection: ChromaCollection) -> None:
    for user in USERS:
        known = collection.catalogue()
        seen = [user.sees(chunk) for chunk in known.values()]
        assert known.share(user) == sum(seen) / len(seen) < 1
        watched = Watched(collection)
        settings = load(profile="full", environ={}).settings
        settings = settings.with_values({"words.depth": 15, "retrieval.pool_size": 30})
        settings = settings.with_values({"quality.reranker": "none"})
        result = search_and_filter(QUERY, settings, Backends(watched, EMBEDDER), user)
        assert len(watched.searches) == 1, user
        assert all(user.sees(hit.chunk) for hit in result.pool.hits)
        assert watched.fetched, user
        assert all(user.sees(known[i]) for i in watched.fetched)
