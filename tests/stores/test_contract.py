"""The contract of `ragfilter.testing`, run by our own store in each of its forms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragfilter.protocols import Collection
from ragfilter.stores import metadata
from ragfilter.stores.chroma.store import ChromaStore
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.metadata import to_metadata
from ragfilter.testing import CHUNKS, VECTORS, CollectionTests, MemoryCollection


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    store = ChromaStore.folder(tmp_path_factory.mktemp("chroma"))
    rows = [StoredRow(chunk, vector) for chunk, vector in zip(CHUNKS, VECTORS, strict=True)]
    store.create("ours", embedder="given").write(rows)
    raw = store.client.create_collection("foreign", embedding_function=None)
    metadatas: list[Any] = [to_metadata(chunk) for chunk in CHUNKS]
    raw.add(
        ids=[chunk.id for chunk in CHUNKS],
        embeddings=VECTORS,
        documents=[chunk.text for chunk in CHUNKS],
        metadatas=metadatas,
    )
    yield store
    store.close()


class TestInMemory(CollectionTests):
    @pytest.fixture
    def collection(self) -> Collection:
        return MemoryCollection(CHUNKS, VECTORS)


class TestChroma(CollectionTests):
    @pytest.fixture(params=["ours", "foreign"])
    def collection(self, store: ChromaStore, request: pytest.FixtureRequest) -> Collection:
        return store.collection(request.param)


class TestChromaWithoutConditions(CollectionTests):
    """Files are resolved to ids instead."""

    @pytest.fixture
    def collection(self, store: ChromaStore, monkeypatch: pytest.MonkeyPatch) -> Collection:
        monkeypatch.setattr(metadata, "FEW_SOURCES", 0)
        return store.collection("ours")


class TestLargeChroma(CollectionTests):
    """Too large for a catalogue."""

    @pytest.fixture
    def collection(self, store: ChromaStore, monkeypatch: pytest.MonkeyPatch) -> Collection:
        monkeypatch.setattr(store, "catalogue_limit", 3)
        return store.collection("ours")


class TestReopenedChroma(CollectionTests):
    @pytest.fixture
    def collection(self, tmp_path: Path) -> Iterator[Collection]:
        rows = [StoredRow(chunk, vector) for chunk, vector in zip(CHUNKS, VECTORS, strict=True)]
        first = ChromaStore.folder(tmp_path)
        first.create("ours", embedder="given").write(rows)
        first.close()
        again = ChromaStore.folder(tmp_path)
        yield again.collection("ours")
        again.close()
