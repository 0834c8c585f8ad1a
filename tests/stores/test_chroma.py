"""The Chroma adapter on a real embedded Chroma."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import PROCESS_S

from ragfilter.errors import CollectionMissing, StoreError
from ragfilter.model import Chunk
from ragfilter.protocols import Vectors
from ragfilter.stores import chroma as chroma_collection
from ragfilter.stores.base import Opening
from ragfilter.stores.chroma import ChromaCollection, ChromaStore
from ragfilter.stores.copies import StoredRow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChromaStore]:
    store = ChromaStore.folder(tmp_path / "chroma")
    yield store
    store.close()


def unit(*values: float) -> Vectors:
    vector = np.array(values, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def around(count: int) -> list[Vectors]:
    """Unit vectors at growing angles from (1, 0)."""
    angles = np.linspace(0, np.pi, count)
    return [unit(float(np.cos(a)), float(np.sin(a))) for a in angles]


def filled(store: ChromaStore, chunks: list[Chunk], name: str = "demo") -> ChromaCollection:
    collection = store.create(name, embedder="fake")
    vectors = around(len(chunks))
    collection.write([StoredRow(c, v) for c, v in zip(chunks, vectors, strict=True)])
    return collection


def numbered(count: int) -> list[Chunk]:
    return [Chunk(f"c{i:04d}", f"text {i}") for i in range(count)]


@pytest.mark.parametrize(("space", "distance"), [("cosine", 1.0), ("ip", 1.0), ("l2", 2.0)])
def test_the_space_is_the_collections_own(store: ChromaStore, space: Any, distance: float) -> None:
    raw = store.client.create_collection("foreign", configuration={"hnsw": {"space": space}}, embedding_function=None)
    raw.add(ids=["a"], embeddings=[[0.0, 1.0]])
    collection = store.collection("foreign")
    assert collection.space == space
    assert collection.nearest(unit(1, 0), 1) == [("a", pytest.approx(distance))]


def test_a_stored_embedding_function_is_never_built(store: ChromaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    from chromadb.utils.embedding_functions import DefaultEmbeddingFunction

    built: list[Any] = []
    raw = store.client.create_collection("foreign", embedding_function=DefaultEmbeddingFunction())
    raw.add(ids=["a"], embeddings=[[0.0, 1.0]], documents=["text"])
    monkeypatch.setattr(DefaultEmbeddingFunction, "build_from_config", staticmethod(built.append))
    collection = store.collection("foreign")
    assert collection.nearest(unit(0, 1), 1)[0][0] == "a"
    assert collection.space in ("l2", "cosine")
    store.opening = lambda name: Opening(writable=name == "foreign")
    collection.set_rules({"a": "{}"})
    assert collection.rule("a") == "{}"
    assert [info.name for info in store.collections()] == ["foreign"]
    assert built == []


def test_everything_is_paged(store: ChromaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("PAYLOAD_PAGE", 7), ("IDS_PAGE", 5), ("WRITE_BATCH", 4)):
        monkeypatch.setattr(chroma_collection, name, size)
    chunks = numbered(30)
    collection = filled(store, chunks)
    assert collection.count() == 30
    assert list(collection.chunks([c.id for c in chunks]).values()) == chunks
    assert set(collection.catalogue()) == {c.id for c in chunks}
    some = [c.id for c in chunks[::-2]]
    found = [i for i, _ in collection.nearest(unit(1, 0), 8, ids=some)]
    assert found == sorted(some)[:8]


def test_a_version_is_outdated_once_its_collection_was_changed_or_deleted(store: ChromaStore) -> None:
    first = filled(store, [Chunk("b")]).version
    assert not store.outdated(first)
    store.collection("demo").set_rules({"b": '{"contain":"y"}'})
    assert store.outdated(first)
    second = store.collection("demo").version
    assert not store.outdated(second)
    store.delete("demo")
    assert store.outdated(second)
    again = filled(store, [Chunk("b")]).version
    assert not store.outdated(again)


def test_the_version_survives_a_restart_and_not_a_reset(tmp_path: Path) -> None:
    store = ChromaStore.folder(tmp_path)
    before = filled(store, numbered(2)).version
    store.close()
    store = ChromaStore.folder(tmp_path)
    assert store.collection("demo").version == before
    store.delete("demo")
    assert filled(store, numbered(2)).version != before
    store.close()


def test_a_missing_collection_is_said_to_be_missing(store: ChromaStore) -> None:
    with pytest.raises(CollectionMissing, match="nobody"):
        store.collection("nobody")
    collection = filled(store, numbered(2))
    store.delete("demo")
    store.delete("demo")
    with pytest.raises(CollectionMissing):
        collection.count()


def test_a_collection_made_anew_is_found_by_those_who_hold_it(store: ChromaStore) -> None:
    collection = filled(store, numbered(2))
    collection.catalogue()
    store.delete("demo")
    filled(store, numbered(5))
    assert (collection.count(), len(collection.catalogue())) == (5, 5)


def test_collections_are_listed_with_what_is_known_of_them(store: ChromaStore) -> None:
    filled(store, numbered(3), "ours").set_content("abc")
    filled(store, numbered(2), "half")
    store.client.create_collection("foreign", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    rows = [(i.name, i.count, i.space, i.embedder, i.ours, i.complete) for i in store.collections()]
    assert rows == [
        ("foreign", 0, "cosine", "", False, True),
        ("half", 2, "l2", "fake", True, False),
        ("ours", 3, "l2", "fake", True, True),
    ]


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError) as error:
        ChromaStore.folder(tmp_path)
    assert str(tmp_path) in error.value.message
    # Again in the same process, then fixed: nothing of the failure remains.
    with pytest.raises(StoreError, match="not a database"):
        ChromaStore.folder(tmp_path)
    (tmp_path / "chroma.sqlite3").unlink()
    store = ChromaStore.folder(tmp_path)
    assert store.collections() == ()
    store.close()
    with pytest.raises(StoreError, match="was closed") as error:
        store.collections()
    assert "bindings" not in str(error.value)


# A store whose files are made read-only, opened and then written to, in its own process.
READ_ONLY = """
import sys
from pathlib import Path
from ragfilter.stores.chroma import ChromaStore
from ragfilter.errors import StoreError

folder = Path(sys.argv[1])
try:
    store = ChromaStore.folder(folder)
    store.collection("demo").touch()
except StoreError as error:
    print(error)
"""


def test_a_read_only_store_is_not_to_be_moved_away(tmp_path: Path) -> None:
    store = ChromaStore.folder(tmp_path)
    filled(store, numbered(3))
    store.close()
    (tmp_path / "chroma.sqlite3").chmod(0o444)
    # Without this, root could write more than a file's mode says.
    plain = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    command = [*(plain if os.geteuid() == 0 else []), sys.executable, "-c", READ_ONLY]
    made = subprocess.run(
        [*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=PROCESS_S, check=True
    )
    assert "read" in made.stdout
    assert "make it writable" in made.stdout
    assert "do not move it away" in made.stdout
