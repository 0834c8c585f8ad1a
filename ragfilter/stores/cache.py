"""A cache in the workspace for texts that are expensive to make: an LLM's answers, by what was
asked. It is a folder, or a table of the workspace's database.

Source: docs/design.md#cache, docs/decisions/0018-caches-and-verdicts.md. Nothing depends on it: if
the folder is damaged or cannot be written, one warning says so, nothing is found and nothing is
stored. Nothing in it is executed, whoever wrote it.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import sys
from functools import cached_property
from pathlib import Path

from ragfilter.basics import database
from ragfilter.basics.database import TEXT, TIME, WHOLE
from ragfilter.basics.extras import extra
from ragfilter.errors import StoreError

with extra("chroma"):
    import sqlalchemy as sa
    from diskcache_community import Cache, SafeDisk

log = logging.getLogger(__name__)

FOLDER = "cache"
MB = 1_000_000
BUSY_S = 1


class DiskCache:
    """At most `limit_mb` megabytes of texts by key, in the folder `path`, which is created on first
    use. The least recently used go first. Safe across threads and processes."""

    def __init__(self, path: Path, limit_mb: float) -> None:
        self._path = path
        self._limit = int(limit_mb * MB)
        self._told = False

    def get(self, key: str) -> str | None:
        """The text for `key`, None if there is none (any more)."""
        try:
            text = self._cache.get(key)
        except Exception as error:
            self._tell(error)
            return None
        return text if isinstance(text, str) else None

    def put(self, key: str, text: str) -> None:
        """Store `text` for `key`, if it fits into the limit."""
        try:
            if len(text.encode()) < self._limit:
                self._cache.set(key, text)
                self._cache.cull()
        except Exception as error:
            self._tell(error)

    def size(self) -> tuple[int, int]:
        """The number of texts, and the bytes they take up. Raises what the library raises."""
        return (len(self._cache), self._cache.volume()) if self._path.exists() else (0, 0)

    def clear(self) -> None:
        """Remove everything; a damaged folder is deleted. Raises what the library raises."""
        try:
            if self._path.exists():
                self._cache.clear()
        except sqlite3.Error:
            self.close()
            shutil.rmtree(self._path)

    def close(self) -> None:
        """Close the folder; it is opened again when needed."""
        if "_cache" in vars(self):
            self._cache.close()
            del self._cache

    @cached_property
    def _cache(self) -> Cache:
        if os.path.expandvars(self._path) != str(self._path):
            # The library would put the cache elsewhere, where nobody finds and clears it.
            raise OSError("its path contains the name of an environment variable")
        return Cache(
            self._path,
            timeout=BUSY_S,
            disk=SafeDisk.with_options(on_error="miss"),
            eviction_policy="least-recently-used",
            size_limit=self._limit,
            disk_min_file_size=sys.maxsize,  # Never in a file of its own, which could be half.
            sqlite_mmap_size=0,  # Who truncates a mapped file ends the process.
        )

    def _tell(self, error: Exception) -> None:
        if not self._told:
            log.warning(
                "answers are not cached: %s: %r. Clear the cache to start over.", self._path, error
            )
        self._told = True


_texts = database.table(
    "cached_texts", sa.UniqueConstraint("key"), key=TEXT, text=TEXT, size=WHOLE, used=TIME
)
PUT = sa.text(
    "INSERT INTO cached_texts (key, text, size, used) VALUES (:key, :text, :size, now()) "
    "ON CONFLICT (key) DO UPDATE SET text = excluded.text, size = excluded.size, used = now()"
)
CULL = sa.text(
    "DELETE FROM cached_texts WHERE id IN (SELECT id FROM (SELECT id, "
    "sum(size) OVER (ORDER BY used DESC, id DESC) AS up_to FROM cached_texts) AS each "
    "WHERE up_to > :most)"
)


class DatabaseCache(database.Book):
    """The same in PostgreSQL, for every process that has the workspace open."""

    what = "cache"
    called = "The cache of answers"
    tables = (_texts,)

    def __init__(self, url: str, limit_mb: float) -> None:
        super().__init__(url)
        self._limit = int(limit_mb * MB)

    def get(self, key: str) -> str | None:
        """The text for `key`, None if there is none (any more)."""
        used = _texts.update().where(_texts.c.key == key).values(used=sa.func.now())
        try:
            with self._writing() as connection:
                text = connection.execute(used.returning(_texts.c.text)).scalar_one_or_none()
                return None if text is None else str(text)
        except StoreError as error:
            log.warning("%s", error)
            return None

    def put(self, key: str, text: str) -> None:
        """Store `text` for `key`, if it fits into the limit."""
        size = len(text.encode())
        if size >= self._limit:
            return
        try:
            with self._writing() as connection:
                connection.execute(PUT, {"key": key, "text": text, "size": size})
                connection.execute(CULL, {"most": self._limit})
        except StoreError as error:
            log.warning("%s", error)

    def size(self) -> tuple[int, int]:
        """The number of texts, and the bytes they take up. Raises StoreError."""
        bytes_taken = sa.func.coalesce(sa.func.sum(_texts.c.size), 0)
        ((entries, size),) = self._read(sa.select(sa.func.count(), bytes_taken))
        return entries, size

    def clear(self) -> None:
        """Remove everything. Raises StoreError."""
        with self._writing() as connection:
            connection.execute(_texts.delete())


def open_cache(folder: Path, address: str, limit_mb: float) -> DiskCache | DatabaseCache:
    """The cache of the workspace in `folder`, or at an address. The caller closes it."""
    return DatabaseCache(address, limit_mb) if address else DiskCache(folder / FOLDER, limit_mb)
