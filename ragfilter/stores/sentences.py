"""Vectors of the sentences of indexed chunks, from which extractive answers are chosen.

Source: docs/design.md#parts. One SQLite file in the workspace, ``sentences.db``. Nothing depends on
it: a sentence that it lacks is embedded when an answer needs it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

import numpy as np

from ragfilter.protocols import Vectors

T = TypeVar("T")
log = logging.getLogger(__name__)

FILE = "sentences.db"
BUSY_S = 2
AT_ONCE = 500
"""Keys in one query; SQLite allows 999 values."""
TABLES = """
CREATE TABLE IF NOT EXISTS vectors
    (key BLOB, collection TEXT, vector BLOB, PRIMARY KEY (key, collection));
CREATE TABLE IF NOT EXISTS settled (collection TEXT PRIMARY KEY, mark TEXT);
"""


class Sentences:
    """The sentence vectors in the workspace `folder`. Safe across threads and processes. If the
    file cannot be used, one warning says so, nothing is found and nothing is stored."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._told = False

    def find(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """The vectors (float32, unit length) that `model` made of `texts`, as far as they are
        stored, by text."""
        by_key = {_key(model, text): text for text in texts}

        def read(database: sqlite3.Connection) -> dict[str, Vectors]:
            vectors: dict[str, Vectors] = {}
            for keys in _parts(list(by_key)):
                marks = ",".join("?" * len(keys))
                query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
                rows = database.execute(query, keys)
                vectors |= {by_key[key]: np.frombuffer(blob, np.float32) for key, blob in rows}
            return vectors

        return self._do(read, {})

    def put(self, collection: str, model: str, texts: Sequence[str], vectors: Vectors) -> None:
        """Store the vectors of sentences of a collection, shape (len(texts), dimension)."""
        rows = [
            (_key(model, text), collection, vector.tobytes())
            for text, vector in zip(texts, vectors, strict=True)
        ]
        insert = "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)"
        self._do(lambda database: database.executemany(insert, rows) and None, None)

    def completed(self) -> dict[str, str]:
        """The collections whose sentences are all stored, each with the mark of its content."""
        read = "SELECT collection, mark FROM settled"
        return self._do(lambda database: dict(database.execute(read).fetchall()), {})

    def mark_complete(self, collection: str, mark: str, model: str, texts: Collection[str]) -> None:
        """Note that `texts` are all the sentences of a collection, and remove its others."""
        wanted = {_key(model, text) for text in texts}

        def write(database: sqlite3.Connection) -> None:
            there = database.execute("SELECT key FROM vectors WHERE collection = ?", [collection])
            gone = [(key, collection) for (key,) in there if key not in wanted]
            database.executemany("DELETE FROM vectors WHERE key = ? AND collection = ?", gone)
            database.execute("INSERT OR REPLACE INTO settled VALUES (?, ?)", [collection, mark])

        self._do(write, None)

    def forget(self, collection: str) -> None:
        """Remove all sentences of a collection."""

        def write(database: sqlite3.Connection) -> None:
            for table in ("vectors", "settled"):
                database.execute(f"DELETE FROM {table} WHERE collection = ?", [collection])

        self._do(write, None)

    def _do(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """What `work` returns, in one transaction, or `otherwise` if the database fails."""
        try:
            with closing(sqlite3.connect(self._path, timeout=BUSY_S)) as database, database:
                database.executescript(TABLES)
                return work(database)
        except sqlite3.Error as error:
            if not self._told:
                log.warning("%s cannot be used (%s). Delete it to start over.", self._path, error)
            self._told = True
            return otherwise


def _parts(keys: list[bytes]) -> Iterator[list[bytes]]:
    return (keys[start : start + AT_ONCE] for start in range(0, len(keys), AT_ONCE))


def _key(model: str, text: str) -> bytes:
    return blake2b(f"{model}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()
