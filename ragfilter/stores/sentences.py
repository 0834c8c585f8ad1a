"""Vectors of the sentences of indexed chunks, from which extractive answers are chosen.

Source: docs/design.md#parts. They are in ``sentences.db`` of the workspace's folder, or in its
database. Nothing depends on them: a sentence that is missing is embedded when an answer needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from hashlib import blake2b
from typing import TypeVar

import numpy as np

from ragfilter.basics import database
from ragfilter.basics.extras import extra
from ragfilter.errors import StoreError
from ragfilter.protocols import Vectors
from ragfilter.stores.base import pages
from ragfilter.stores.workspace import Workspace

with extra("chroma"):
    import sqlalchemy as sa

T = TypeVar("T")
log = logging.getLogger(__name__)

FILE = "sentences.db"
AT_ONCE = 500
"""Keys in one query; SQLite allows 999 values."""

_vectors = sa.Table(
    "sentence_vectors", sa.MetaData(), sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),
)  # fmt: skip
_completed = sa.Table(
    "sentences_completed", sa.MetaData(), sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("mark", sa.Text, nullable=False),
)  # fmt: skip


PUT = sa.text(
    "INSERT INTO sentence_vectors (key, collection, vector) VALUES (:key, :collection, :vector) "
    "ON CONFLICT (key, collection) DO UPDATE SET vector = excluded.vector"
)


class _SentenceTables(database.Book):
    what = "sentences"
    called = "The file of sentences"
    tables = (_vectors, _completed)


class Sentences:
    """The sentence vectors of a workspace. Safe across threads and processes. If the database
    cannot be used, one warning says so, nothing is found and nothing is stored."""

    def __init__(self, workspace: Workspace) -> None:
        self._url = workspace.address or f"sqlite:///{workspace.path / FILE}"
        self._book: _SentenceTables | None = None
        self._told = False

    def find(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """The vectors (float32, unit length) that `model` made of `texts`, as far as they are
        stored, by text."""
        by_key = {_key(model, text): text for text in texts}

        def read(connection: sa.Connection) -> dict[str, Vectors]:
            vectors: dict[str, Vectors] = {}
            for keys in pages(list(by_key), AT_ONCE):
                query = sa.select(_vectors.c.key, _vectors.c.vector)
                rows = connection.execute(query.where(_vectors.c.key.in_(keys)))
                vectors |= {by_key[key]: np.frombuffer(blob, np.float32) for key, blob in rows}
            return vectors

        return self._do(read, {})

    def put(self, collection: str, model: str, texts: Sequence[str], vectors: Vectors) -> None:
        """Store the vectors of sentences of a collection, shape (len(texts), dimension)."""
        rows = [
            {"key": _key(model, text), "collection": collection, "vector": vector.tobytes()}
            for text, vector in zip(texts, vectors, strict=True)
        ]
        self._do(lambda connection: connection.execute(PUT, rows) and None, None)

    def completed(self) -> dict[str, str]:
        """The collections whose sentences are all stored, each with the mark of its content."""

        def read(connection: sa.Connection) -> dict[str, str]:
            return dict(map(tuple, connection.execute(sa.select(_completed))))

        return self._do(read, {})

    def mark_complete(self, collection: str, mark: str, model: str, texts: Collection[str]) -> None:
        """Note that `texts` are all the sentences of a collection, and remove its others."""
        wanted = {_key(model, text) for text in texts}

        def write(connection: sa.Connection) -> None:
            mine = _vectors.c.collection == collection
            there = connection.execute(sa.select(_vectors.c.key).where(mine)).scalars()
            for keys in pages([key for key in there if key not in wanted], AT_ONCE):
                connection.execute(_vectors.delete().where(mine & _vectors.c.key.in_(keys)))
            connection.execute(_completed.delete().where(_completed.c.collection == collection))
            connection.execute(_completed.insert().values(collection=collection, mark=mark))

        self._do(write, None)

    def forget(self, collection: str) -> None:
        """Remove all sentences of a collection."""

        def write(connection: sa.Connection) -> None:
            for table in _SentenceTables.tables:
                connection.execute(table.delete().where(table.c.collection == collection))

        self._do(write, None)

    def close(self) -> None:
        """Close the database; it is opened again when needed."""
        if self._book is not None:
            self._book.close()
            self._book = None

    def _do(self, work: Callable[[sa.Connection], T], otherwise: T) -> T:
        """What `work` returns, in one transaction, or `otherwise` if the database fails."""
        try:
            self._book = self._book or _SentenceTables(self._url)
            with self._book._writing() as connection:
                return work(connection)
        except StoreError as error:
            if not self._told:
                log.warning("%s Delete it to start over.", error.message)
            self._told = True
            return otherwise


def _key(model: str, text: str) -> bytes:
    return blake2b(f"{model}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
