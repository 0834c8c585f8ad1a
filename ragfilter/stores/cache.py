"""A cache in the workspace for texts that are expensive to make: an LLM's answers, by what was
asked. It is a table, in ``cache.db`` of the workspace's folder or in its database.

Source: docs/design.md#cache, docs/decisions/0018-caches-and-verdicts.md. Nothing depends on it: if
it is damaged or cannot be written, one warning says so, nothing is found and nothing is stored. It
holds nothing but texts, so nothing in it is executed, whoever wrote it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ragfilter.basics import database
from ragfilter.basics.database import TEXT, TIME, WHOLE
from ragfilter.errors import extra

with extra("chroma"):
    import sqlalchemy as sa

FILE = "cache.db"
MB = 1_000_000

_texts = database.table(
    "cached_texts", sa.UniqueConstraint("key"), key=TEXT, text=TEXT, size=WHOLE, used=TIME
)
PUT = sa.text(
    "INSERT INTO cached_texts (key, text, size, used) VALUES (:key, :text, :size, :used) "
    "ON CONFLICT (key) DO UPDATE SET text = :text, size = :size, used = :used"
).bindparams(sa.bindparam("used", type_=TIME))
CULL = sa.text(
    "DELETE FROM cached_texts WHERE id IN (SELECT id FROM (SELECT id, "
    "sum(size) OVER (ORDER BY used DESC, id DESC) AS up_to FROM cached_texts) AS each "
    "WHERE up_to > :most)"
)


class TextCache(database.OptionalBook):
    """At most `limit_mb` megabytes of texts by key, of the workspace in `folder` or at an address.
    The least recently used go first. Safe across threads and processes."""

    what = "cache"
    called = "The cache of answers"
    tables = (_texts,)

    def __init__(self, folder: Path, address: str, limit_mb: float) -> None:
        self._file = None if address else folder / FILE
        self._limit = int(limit_mb * MB)
        super().__init__(address or f"sqlite:///{self._file}")

    def get(self, key: str) -> str | None:
        """The text for `key`, None if there is none (any more)."""
        used = _texts.update().filter_by(key=key).values(used=datetime.now(UTC))

        def read(connection: sa.Connection) -> str | None:
            text = connection.execute(used.returning(_texts.c.text)).scalar_one_or_none()
            return text if isinstance(text, str) else None

        return self._attempt(read, None)

    def put(self, key: str, text: str) -> None:
        """Store `text` for `key`, if it fits into the limit."""
        size = len(text.encode())
        row = {"key": key, "text": text, "size": size, "used": datetime.now(UTC)}

        def write(connection: sa.Connection) -> None:
            connection.execute(PUT, row)
            connection.execute(CULL, {"most": self._limit})

        if size < self._limit:
            self._attempt(write, None)
