"""A cache file in the workspace for texts that are expensive to make: an LLM's answers, by what was
asked.

Source: docs/design.md#cache. SQLite, limited in size; the least recently used text is removed
first. Safe across threads and processes. Nothing depends on it: if the file is damaged or cannot be
written, one warning says so, nothing is found and nothing is stored.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

log = logging.getLogger(__name__)

FILE = "cache.db"
MB = 1_000_000
BUSY_S = 1.0
OVERHEAD = 200
"""Bytes of an entry besides its text: its key, and its place in the index."""
FRESH_S = 3600.0
"""A text used more recently than this is not written again to record its use."""

R = TypeVar("R")

_TABLE = """
CREATE TABLE IF NOT EXISTS kept (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, size INTEGER NOT NULL, used REAL NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Size:
    """The number of stored texts and their size in bytes."""

    entries: int
    bytes: int


class DiskCache:
    """At most `limit_mb` megabytes of texts by key, in the file at `path`, which is created on
    first use."""

    def __init__(self, path: Path, limit_mb: float) -> None:
        self._path = path
        self._limit = int(limit_mb * MB)
        self._database: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._told = False

    def get(self, key: str) -> str | None:
        """The text for `key`, None if there is none (any more)."""

        def read(database: sqlite3.Connection) -> str | None:
            row = database.execute("SELECT text, used FROM kept WHERE key = ?", (key,)).fetchone()
            if row is None or not isinstance(row[0], str):
                return None
            return row[0]

        found = self._try(read)
        if found is not None:
            self._try(lambda database: _use(database, key))
        return found

    def put(self, key: str, text: str) -> None:
        """Store `text` for `key`, if it fits into the limit."""
        size = len(text.encode("utf-8", "surrogatepass")) + OVERHEAD
        if size > self._limit:
            return

        def write(database: sqlite3.Connection) -> None:
            row = (key, text, size, time.time())
            database.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", row)
            while _size(database).bytes > self._limit:
                database.execute(
                    "DELETE FROM kept WHERE key IN (SELECT key FROM kept ORDER BY used LIMIT "
                    "(SELECT 1 + count(*) / 20 FROM kept))"
                )

        self._try(write)

    def size(self) -> Size:
        """The size of the cache. Raises OSError, sqlite3.Error."""
        if not self._path.exists():
            return Size(0, 0)
        with self._lock:
            return _size(self._open())

    def clear(self) -> None:
        """Remove everything; a file that cannot be read is deleted. Raises OSError."""
        if not self._path.exists():
            return
        with self._lock:
            try:
                with self._open() as database:
                    database.execute("DELETE FROM kept")
                self._told = False
            except sqlite3.Error:
                self._close()
                self._path.unlink()

    def close(self) -> None:
        """Close the file; it is opened again when needed."""
        with self._lock:
            self._close()

    def _try(self, work: Callable[[sqlite3.Connection], R]) -> R | None:
        with self._lock:
            try:
                with self._open() as database:
                    return work(database)
            except (sqlite3.Error, OSError, UnicodeError) as error:
                if not self._told:
                    log.warning(
                        "answers are not cached: %s: %s. Clear the cache to start over.",
                        self._path, error,
                    )  # fmt: skip
                self._told = True
                return None

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            database = sqlite3.connect(self._path, timeout=BUSY_S, check_same_thread=False)
            try:
                # Return the space of removed texts to the disk.
                database.execute("PRAGMA auto_vacuum = FULL")
                database.execute(_TABLE)
            except BaseException:
                database.close()
                raise
            self._database = database
        return self._database

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def _use(database: sqlite3.Connection, key: str) -> None:
    now = time.time()
    database.execute(
        "UPDATE kept SET used = ? WHERE key = ? AND used < ?", (now, key, now - FRESH_S)
    )


def _size(database: sqlite3.Connection) -> Size:
    entries, size = database.execute("SELECT count(*), total(size) FROM kept").fetchone()
    return Size(entries, int(size))
