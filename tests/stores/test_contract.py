"""The contract of `ragfilter.testing`, run for each of our stores in each of its forms. test_docs.py runs it for the
store in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from stores import qdrant
from test_chroma_server import chroma_run
from test_postgres import another
from waiting import PATIENT_S

from ragfilter.model import Chunk
from ragfilter.protocols import Vectors
from ragfilter.stores.base import Opening, VersionedStore
from ragfilter.stores.chroma import ChromaStore, Server
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.metadata import to_metadata
from ragfilter.stores.postgres import search, tables
from ragfilter.stores.postgres.foreign import TableStore
from ragfilter.stores.postgres.store import PgStore
from ragfilter.testing import CHUNKS, Make, RuleStoreTests

names = (f"collection-{number}" for number in count())


def stored(chunks: Sequence[Chunk], vectors: Vectors) -> list[StoredRow]:
    return [StoredRow(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]


def filled(store: VersionedStore[Any], chunks: Sequence[Chunk], vectors: Vectors) -> Any:
    collection = store.create(next(names), embedder="given")
    collection.write(stored(chunks, vectors))
    collection.set_content("x")
    return collection


class TestChroma(RuleStoreTests):
    damages = (
        {"clearance": "top"},
        {"clearance": "1"},
        {"clearance": -1},
        {"clearance": 1.5},
        {"clearance": True},
        {"clearance": None},
        {"department": None},
    )

    def damage(self, collection: Any, how: Any) -> None:
        ids = [chunk.id for chunk in CHUNKS]
        collection.raw().update(ids=ids, metadatas=[how] * len(ids))

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
        store = ChromaStore.folder(tmp_path_factory.mktemp("chroma"))
        yield store
        store.close()

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, store: ChromaStore) -> Make:
        return lambda chunks, vectors: filled(store, chunks, vectors)


class TestForeignChroma(TestChroma):
    damages = TestChroma.damages[:-2]

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, store: ChromaStore) -> Make:
        def make(chunks: Sequence[Chunk], vectors: Vectors) -> Any:
            raw = store.client.create_collection(next(names), embedding_function=None)
            metadatas: list[Any] = [to_metadata(chunk) for chunk in chunks]
            texts = [chunk.text for chunk in chunks]
            ids = [chunk.id for chunk in chunks]
            raw.add(ids=ids, embeddings=vectors, documents=texts, metadatas=metadatas)
            return store.collection(raw.name)

        store.opening = lambda name: Opening(writable=True)
        return make


class TestLargeChroma(TestChroma):
    """Too large for a catalogue."""

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, store: ChromaStore) -> Make:
        store.catalogue_limit = 3
        return lambda chunks, vectors: filled(store, chunks, vectors)


class TestChromaServer(TestChroma):
    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
        with chroma_run(tmp_path_factory.mktemp("server")) as (url, _):
            store = Server(url, timeout_s=PATIENT_S).open()
            yield store
            store.close()


class TestQdrant(TestChroma):
    damages = (*TestChroma.damages, {"clearance": [1]}, {"department": ["", "ops"]})

    def damage(self, collection: Any, how: Any) -> None:
        from qdrant_client import models

        with collection._store.asking() as client:
            client.set_payload(collection.name, how, models.Filter())

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls) -> Iterator[Any]:
        store = qdrant(":memory:").open()
        yield store
        store.close()


class TestLargeQdrant(TestQdrant):
    make = TestLargeChroma.make


class TestPostgres(RuleStoreTests):
    damages = ("clearance = NULL", "clearance = -1", "department = NULL")

    def damage(self, collection: Any, how: Any) -> None:
        with collection._store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE {tables.chunks_of(collection.raw())} SET {how}")

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, postgres: str) -> Iterator[PgStore]:
        store = PgStore(another(postgres))
        yield store
        store.close()

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, store: PgStore) -> Make:
        def make(chunks: Sequence[Chunk], vectors: Vectors) -> Any:
            name = next(names)
            store.put(name, stored(chunks, vectors), embedder="given")
            return store.collection(name)

        return make


class TestIndexedPostgres(TestPostgres):
    """Too large for a search row by row, and for a catalogue."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def indexed(cls, store: PgStore) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "FEW", 3)
            patch.setattr(store, "catalogue_limit", 3)
            yield


class TestTable(RuleStoreTests):
    """Another program's table, with fields in columns and in JSON."""

    damages = (
        'meta = meta || \'{"clearance": "top"}\'',
        "meta = meta || '{\"clearance\": -1}'",
        "meta = meta || '{\"clearance\": [1]}'",
    )

    def damage(self, collection: Any, how: Any) -> None:
        with collection._store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE {collection._table.sql} SET {how}")

    @pytest.fixture(scope="class")
    @classmethod
    def store(cls, postgres: str) -> Iterator[TableStore]:
        store = TableStore(another(postgres))
        store.opening = lambda name: Opening(writable=True)
        yield store
        store.close()

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, store: TableStore) -> Make:
        def make(chunks: Sequence[Chunk], vectors: Vectors) -> Any:
            name = next(names).replace("-", "_")
            given = []
            for chunk, vector in zip(chunks, vectors, strict=True):
                own = to_metadata(chunk)
                columns = own.pop("source", ""), own.pop("department"), tables.written(vector)
                given.append((chunk.id, chunk.text, *columns, json.dumps(own)))
            with store.writing() as connection:
                connection.exec_driver_sql(
                    f"CREATE TABLE {name} (id text PRIMARY KEY, text text, source text, "
                    f"department text, v vector({vectors.shape[1]}), meta jsonb)"
                )
                connection.exec_driver_sql(f"CREATE INDEX ON {name} USING hnsw (v vector_l2_ops)")
                connection.exec_driver_sql(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s, %s)", given)
            return store.open(name, Opening(metric="l2"))

        return make


class TestIndexedTable(TestTable):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def indexed(cls) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(search, "FEW", 3)
            yield
