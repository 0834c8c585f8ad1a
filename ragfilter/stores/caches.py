"""Caches of what is expensive to make: texts, such as an LLM's answers, and vectors of texts.

Source: docs/design.md#cache, docs/decisions/0018-caches-and-verdicts.md. They are files in the workspace's folder, or
tables in its database. Nothing depends on them: if one is damaged or cannot be written, it logs one warning, finds
nothing and stores nothing. They hold only texts and numbers, so nothing in them is executed, whoever wrote it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import numpy as np

from ragfilter.basics import database
from ragfilter.basics.database import TEXT, TIME, WHOLE
from ragfilter.errors import extra
from ragfilter.protocols import Vectors
from ragfilter.stores.base import pages

with extra("chroma"):
    import sqlalchemy as sa

TEXTS, VECTORS = "cache.db", "sentences.db"
"""The files in a workspace's folder."""
MB = 1_000_000
AT_ONCE = 500
"""Keys per query; SQLite allows 999 values."""
UNFINISHED = "unfinished/"
"""What the names of collections begin with in the cache, for passages embedded by an interrupted indexing."""

_texts = database.table("cached_texts", sa.UniqueConstraint("key"), key=TEXT, text=TEXT, size=WHOLE, used=TIME)
PUT_TEXT = sa.text(
    "INSERT INTO cached_texts (key, text, size, used) VALUES (:key, :text, :size, :used) "
    "ON CONFLICT (key) DO UPDATE SET text = :text, size = :size, used = :used"
).bindparams(sa.bindparam("used", type_=TIME))
CULL = sa.text(
    "DELETE FROM cached_texts WHERE id IN (SELECT id FROM (SELECT id, "
    "sum(size) OVER (ORDER BY used DESC, id DESC) AS up_to FROM cached_texts) AS each "
    "WHERE up_to > :most)"
)


class ReplyCache(database.OptionalBook):
    """At most `limit_mb` megabytes of texts by key, of the workspace in `folder` or at an address. The least recently
    used texts are removed first. Safe across threads and processes."""

    called = "The cache of answers"
    tables = (_texts,)

    def __init__(self, folder: Path, address: str, limit_mb: float) -> None:
        self._limit = int(limit_mb * MB)
        super().__init__(address or f"sqlite:///{folder / TEXTS}")

    def get(self, key: str) -> str | None:
        """The text for `key`; None if there is none."""
        used = _texts.update().filter_by(key=key).values(used=datetime.now(UTC))

        def read(connection: sa.Connection) -> str | None:
            text = connection.execute(used.returning(_texts.c.text)).scalar_one_or_none()
            return text if isinstance(text, str) else None

        return self._attempt(read, None)

    def put(self, key: str, text: str) -> None:
        """Store `text` for `key` if it fits into the limit."""
        size = len(text.encode())
        row = {"key": key, "text": text, "size": size, "used": datetime.now(UTC)}

        def write(connection: sa.Connection) -> None:
            connection.execute(PUT_TEXT, row)
            connection.execute(CULL, {"most": self._limit})

        if size < self._limit:
            self._attempt(write, None)


_vectors = sa.Table(
    "sentence_vectors",
    sa.MetaData(),
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),
)
_completed = sa.Table(
    "sentences_completed",
    sa.MetaData(),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("mark", sa.Text, nullable=False),
)


PUT_VECTOR = sa.text(
    "INSERT INTO sentence_vectors (key, collection, vector) VALUES (:key, :collection, :vector) "
    "ON CONFLICT (key, collection) DO UPDATE SET vector = excluded.vector"
)


class VectorCache(database.OptionalBook):
    """Vectors by text and model, of the workspace in `folder` or at an address: each collection's sentences,
    and of passages that are not indexed yet. Safe across threads and processes."""

    called = "The file of sentences"
    tables = (_vectors, _completed)

    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(address or f"sqlite:///{folder / VECTORS}")
        self._marks: dict[str, str] = {}

    def find(self, model: str, texts: Sequence[str], *, collection: str = "") -> dict[str, Vectors]:
        """The stored vectors (float32, unit length) of `texts` that have one, by text; of one `collection` if given."""
        mine = _vectors.c.collection == collection if collection else sa.true()
        by_key = {_key(model, text): text for text in texts}

        def read(connection: sa.Connection) -> dict[str, Vectors]:
            vectors: dict[str, Vectors] = {}
            for keys in pages(list(by_key), AT_ONCE):
                query = sa.select(_vectors.c.key, _vectors.c.vector)
                rows = connection.execute(query.where(mine & _vectors.c.key.in_(keys)))
                vectors |= {by_key[key]: np.frombuffer(blob, np.float32) for key, blob in rows}
            return vectors

        return self._attempt(read, {})

    def put(self, collection: str, model: str, texts: Sequence[str], vectors: Vectors) -> None:
        """Store the vectors of a collection's texts, shape (len(texts), dimension)."""
        rows = [
            {"key": _key(model, text), "collection": collection, "vector": vector.astype(np.float32).tobytes()}
            for text, vector in zip(texts, vectors, strict=True)
        ]
        self._attempt(lambda connection: connection.execute(PUT_VECTOR, rows) and None, None)

    def completed(self) -> dict[str, str]:
        """The collections whose sentences are all stored: name → mark of the content."""

        def read(connection: sa.Connection) -> dict[str, str]:
            return dict(map(tuple, connection.execute(sa.select(_completed))))

        stored: dict[str, str] = self._attempt(read, {})
        return stored | self._marks

    def mark_complete(self, collection: str, mark: str, model: str, texts: Collection[str]) -> None:
        """Record that `texts` are all the sentences of a collection, and remove its others."""
        wanted = {_key(model, text) for text in texts}
        # Kept in memory even if it cannot be written, so that nothing is embedded repeatedly.
        self._marks[collection] = mark

        def write(connection: sa.Connection) -> None:
            mine = _vectors.c.collection == collection
            stored_keys = connection.execute(sa.select(_vectors.c.key).where(mine)).scalars()
            for keys in pages([key for key in stored_keys if key not in wanted], AT_ONCE):
                connection.execute(_vectors.delete().where(mine & _vectors.c.key.in_(keys)))
            connection.execute(_completed.delete().where(_completed.c.collection == collection))
            connection.execute(_completed.insert().values(collection=collection, mark=mark))

        self._attempt(write, None)

    def forget(self, *collections: str) -> None:
        """Remove all texts of collections."""
        for name in collections:
            self._marks.pop(name, None)

        def write(connection: sa.Connection) -> None:
            for table in self.tables:
                connection.execute(table.delete().where(table.c.collection.in_(collections)))

        self._attempt(write, None)


def _key(model: str, text: str) -> bytes:
    return blake2b(f"{model}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
