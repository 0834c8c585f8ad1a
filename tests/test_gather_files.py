"""Only some files: the pattern on the source, in the store and in memory."""

from __future__ import annotations

import numpy as np
import pytest
from stores import OneVector, unit
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.engine.pool import unfiltered
from ragfilter.engine.replay import replay
from ragfilter.errors import InputError
from ragfilter.model import Chunk, User
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings
from ragfilter.stores.chroma import ChromaStore
from ragfilter.stores.copies import StoredRow

QUERY_MUST = load(profile="query-must", environ={}).settings
FILES = ("apis/display.yaml", "apis/dsp.yaml", "notes.md")


def of_files(store: ChromaStore, name: str, n: int = 300) -> tuple[Backends, list[Chunk]]:
    if name in [info.name for info in store.collections()]:
        store.delete(name)
    vectors = unit(np.random.default_rng(4), n)
    chunks = [
        Chunk(
            f"c{i}",
            "text",
            source=FILES[i % 3],
            clearance=1 if i % 4 == 0 else 0,
            rule='{"contain": "cleric"}' if i % 2 else None,
        )
        for i in range(n)
    ]
    collection = store.create(name, embedder="given")
    collection.write([StoredRow(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)])
    return Backends(collection, OneVector({}, vectors[0])), chunks


@pytest.mark.parametrize("pattern", ["display", "*.yaml", "notes.md", "APIS/*", "", "  "])
def test_a_file_pattern_limits_the_search_itself(store: ChromaStore, pattern: str) -> None:
    backends, chunks = of_files(store, "files")
    plain = Settings().with_values({"retrieval.k": 40, "cutoff.enabled": False})
    plain = plain.with_values({"clearance.enabled": True, "retrieval.pool_size": 20})
    chosen = plain.with_values({"retrieval.source_pattern": pattern})
    result = search_and_filter("q", chosen, backends)
    fits = {"display": FILES[:1], "*.yaml": FILES[:2], "notes.md": FILES[2:], "APIS/*": FILES[:2]}.get(pattern, FILES)
    nearest = search_and_filter("q", plain.with_values({"retrieval.k": 200}), backends).kept
    visible = {c.id for c in chunks if c.clearance == 0}
    expected = [h.id for h in nearest if h.chunk.source in fits and h.id in visible]
    assert [hit.id for hit in result.kept] == expected[:40]
    assert len(result.kept) == 40
    assert {hit.chunk.source for hit in result.pool.hits} <= set(fits)
    assert result.pool.source_pattern == pattern


def test_a_wider_pool_is_narrowed_by_replay_and_nothing_is_asked(store: ChromaStore) -> None:
    backends, _ = of_files(store, "files")
    wide = Settings().with_values({"cutoff.enabled": False, "retrieval.pool_size": 300})
    pool = gather("q", wide, backends)
    for pattern in ("display", "*.md", ""):
        chosen = wide.with_values({"retrieval.source_pattern": pattern})
        narrow = gather("q", chosen, backends)
        replayed = replay(pool, chosen)
        assert [h.id for h in replayed.kept] == [h.id for h in replay(narrow, chosen).kept]
        plain = [[hit.id for hit in unfiltered(p, chosen)] for p in (pool, narrow)]
        assert plain[0] == plain[1]
    assert replay(pool, wide.with_values({"retrieval.source_pattern": "zz"})).kept == ()


def test_a_pattern_that_matches_nothing_names_the_files_that_may_be_named(
    store: ChromaStore, snapshot: SnapshotAssertion
) -> None:
    backends, _ = of_files(store, "files", n=9)
    backends.collection.write(  # type: ignore[attr-defined]
        [StoredRow(Chunk("x", "t", source="secret.md", clearance=4), unit(np.random.default_rng(1), 1)[0])]
    )
    chosen = Settings().with_values({"retrieval.source_pattern": "*.pdf"})
    with pytest.raises(InputError) as refused:
        gather("q", chosen, backends)
    assert str(refused.value) == snapshot
    with pytest.raises(InputError) as refused:
        gather("q", chosen.with_values({"clearance.enabled": True}), backends)
    assert "secret" not in str(refused.value)


FOR_HIDDEN = ["secret", "secret.md", "s*", "[s]ecret.??", "SECRET", "hr", "hr*", "*.doc"]
FOR_NOTHING = ["zzz", "zzz.md", "z*", "[z]ecret.??", "ZECRET", "qq", "qq*", "*.zip"]


@pytest.mark.parametrize(("hidden", "nothing"), [*zip(FOR_HIDDEN, FOR_NOTHING, strict=True)])
def test_a_pattern_for_hidden_files_is_refused_as_one_for_none(
    store: ChromaStore, hidden: str, nothing: str, snapshot: SnapshotAssertion
) -> None:
    backends, _ = of_files(store, "files", n=9)
    vectors = unit(np.random.default_rng(1), 3)
    secrets = [
        Chunk("x", "t", source="secret.md", clearance=4),
        Chunk("y", "t", source="hr.doc", department="hr"),
        Chunk("z", "t", source="secrets/hr.doc", clearance=None),
    ]
    backends.collection.write(  # type: ignore[attr-defined]
        [StoredRow(chunk, vector) for chunk, vector in zip(secrets, vectors, strict=True)]
    )
    backends.collection.set_content("made")  # type: ignore[attr-defined]
    on = Settings().with_values({"clearance.enabled": True})
    refusals = []
    for pattern in (hidden, nothing):
        chosen = on.with_values({"retrieval.source_pattern": pattern})
        with pytest.raises(InputError) as refused:
            search_and_filter("q", chosen, backends)
        refusals.append(str(refused.value).replace(repr(pattern), "PATTERN"))
        # The same for a pool that was gathered without the pattern.
        result = replay(gather("q", on, backends), chosen)
        assert (result.hits, result.status, result.message) == ((), "ok", "")
    assert refusals[0] == refusals[1]
    assert refusals[0] == snapshot
    # A user who can see one of the files finds it.
    chosen = on.with_values({"retrieval.source_pattern": "secret.md"})
    cleared = search_and_filter("q", chosen, backends, User(4))
    assert [hit.id for hit in cleared.kept] == ["x"]
