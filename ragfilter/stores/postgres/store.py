"""PostgreSQL as a store of collections. Every change to a collection is one transaction, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import blake2b
from typing import Any

from ragfilter.errors import CollectionMissing, WorkspaceLocked, extra
from ragfilter.model import Chunk
from ragfilter.protocols import Vectors
from ragfilter.stores.base import CollectionInfo, check_embedder, check_name, pages
from ragfilter.stores.copies import Bars, CopySummary, StoredRow, text_key, with_rule
from ragfilter.stores.postgres import tables
from ragfilter.stores.postgres.collection import FEW, PgCollection
from ragfilter.stores.postgres.connection import COLUMNS, CollectionRow, PgDatabase

with extra("postgres"):
    import sqlalchemy as sa

BUILD_MEMORY = "1GB"
"""Memory limit for building an index, unless the server's own setting is larger. 50,000 vectors of
384 dimensions take 80 MB; with too little memory, building is much slower."""
WRITE_PART = 5_000


class PgStore(PgDatabase):
    """The collections of a workspace in PostgreSQL. Thread-safe. Raises StoreError."""

    def collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection, by name."""
        names = self.read('SELECT name FROM ragfilter_collections ORDER BY name COLLATE "C"')
        return tuple(self.collection(name).info() for (name,) in names)

    def collection(self, name: str, *, embedder: str = "") -> PgCollection:
        """The collection called `name`. Raises CollectionMissing, and StoreError if `embedder` is not the model that
        made the collection, since their vectors are not comparable."""
        check_embedder(name, self.row(name).embedder, embedder)
        return PgCollection(self, name)

    def outdated(self, version: str) -> bool:
        """Whether a collection has changed since this version, as far as this process saw. Does not query the store."""
        number, _, count = version.partition(":")
        return number.isdigit() and self.versions.get(int(number), 0) > int(count)

    def summary(self, name: str) -> CopySummary:
        """The summary of a collection, empty if there is none."""
        try:
            row = self.row(name)
        except CollectionMissing:
            return CopySummary()
        chunks = self.read(f"SELECT id, fingerprint, clearance_as_given FROM {row.table}")
        return CopySummary(row.embedder, {i: mark for i, mark, _ in chunks}, {i: text for i, _, text in chunks})

    def put(
        self,
        name: str,
        batch: Sequence[StoredRow],
        *,
        embedder: str,
        content: str = "",
        reset: bool = False,
        rules: Callable[[], Mapping[str, str | None]] = dict,
        progress: Callable[[int], None] = lambda n: None,
    ) -> None:
        """Store chunks with their vectors, replacing those with the same id or, with `reset`, all
        chunks. Makes the collection if it is missing. All or nothing.

        `rules` returns the edited rules, which stay; it is called once nobody else can change any. `progress` receives
        the number of further chunks written; if it raises, nothing is stored. Requires at least one row. Raises
        InputError for an invalid name."""
        check_name(name)
        # Nobody sees this name, and no other collection can have it.
        target = f"{name} (new)" if reset else name
        with self.transaction(), self._writing() as connection:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            created = connection.exec_driver_sql(
                "INSERT INTO ragfilter_collections "
                "(name, embedder, dimension, content, version, removed) "
                "VALUES (%(name)s, %(embedder)s, %(dimension)s, '', 0, 0) "
                "ON CONFLICT (name) DO NOTHING",
                {"name": target, "embedder": embedder, "dimension": len(batch[0].vector)},
            ).rowcount
            # From here on, edits of rules wait.
            with suppress(CollectionMissing), self.changing(name):
                pass
            with self.changing(target) as (_, row):
                if created:
                    connection.exec_driver_sql(tables.chunk_table(row.table, row.dimension))
                edited = rules()
                batch = [with_rule(row, edited) for row in batch]
                self.add_rules(connection, [r.chunk.rule for r in batch if r.chunk.rule])
                for part in pages(batch, WRITE_PART):
                    _merge(connection, row.table, part, row.version, anew=bool(created))
                    progress(len(part))
                _index(connection, row.table, anew=bool(created))
                if reset:
                    _drop(connection, name)
                connection.exec_driver_sql(
                    "UPDATE ragfilter_collections SET name = %(name)s, content = %(content)s, "
                    "changed = now() WHERE id = %(id)s",
                    {"name": name, "content": content, "id": row.number},
                )

    def change_clearances(self, name: str, bars: Mapping[str, Bars]) -> None:
        """Change the clearances of chunks at once. Their fingerprints stay, so their records still
        count as changed; the content has no fingerprint until they are indexed."""
        values = {
            "ids": list(bars),
            "levels": [level for level, _, _ in bars.values()],
            "departments": [tables.plain(of or "").strip() for _, of, _ in bars.values()],
            "said": [None if text is None else tables.plain(text) for _, _, text in bars.values()],
        }
        table = self.row(name).table
        differing = (
            "FROM unnest(%(ids)s::text[], %(levels)s::bigint[], %(departments)s::text[], "
            "%(said)s::text[]) AS new (id, level, department, said) WHERE c.id = new.id AND "
            "(c.clearance, c.department) IS DISTINCT FROM (new.level, new.department)"
        )
        # Looked at first, because a change makes every session ask again.
        if not self.read(f"SELECT 1 {differing.replace('FROM unnest', f'FROM {table} c, unnest')} LIMIT 1", values):
            return
        with self.changing(name) as (connection, row):
            connection.exec_driver_sql(
                f"UPDATE {table} c SET clearance = new.level, department = new.department, "
                f"clearance_as_given = new.said, edited = {row.version} {differing}",
                values,
            )
            connection.exec_driver_sql(
                "UPDATE ragfilter_collections SET content = '' WHERE id = %(id)s", {"id": row.number}
            )

    def vectors_of(self, name: str, passages: Iterable[str]) -> dict[str, Vectors]:
        """The vectors of these passages that a collection has, by passage."""
        by_key = {text_key(passage): passage for passage in passages}
        mine = f"FROM {self.row(name).table} WHERE passage = ANY(%(keys)s)"
        pairs = self.read(f"SELECT DISTINCT ON (passage) passage, vector::text {mine}", {"keys": list(by_key)})
        return {by_key[key]: tables.read(text) for key, text in pairs}

    def texts(self, name: str) -> list[Chunk]:
        """The chunks of a collection with only id, title and text."""
        table = self.row(name).table
        text_rows = self.read(f"SELECT id, text, title FROM {table} ORDER BY place")
        return [Chunk(i, text, title=title) for i, text, title in text_rows]

    def changed(self) -> dict[str, datetime]:
        """When each collection was last indexed."""
        query = 'SELECT name, changed FROM ragfilter_collections ORDER BY name COLLATE "C"'
        return dict(map(tuple, self.read(query)))

    def rename(self, name: str, new: str) -> None:
        """Rename a collection. Raises CollectionMissing."""
        with self.changing(name) as (connection, row):
            connection.exec_driver_sql(
                "UPDATE ragfilter_collections SET name = %(new)s WHERE id = %(id)s", {"new": new, "id": row.number}
            )

    def delete(self, name: str) -> None:
        """Delete a collection if it exists."""
        with self._writing() as connection:
            _drop(connection, name)

    @contextmanager
    def only_one(self, name: str) -> Iterator[None]:
        """Lock a collection against indexing and changes by any other process or thread. Raises WorkspaceLocked."""
        with self._guard(), self._reading.connect() as connection:
            key = {"key": int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)}
            lock = "SELECT pg_try_advisory_lock(%(key)s)"
            if not connection.exec_driver_sql(lock, key).scalar_one():
                message = f"Collection {name!r} is already being indexed."
                raise WorkspaceLocked(message, remedy="Wait until that is done.")
            try:
                yield
            finally:
                connection.exec_driver_sql("SELECT pg_advisory_unlock(%(key)s)", key)


def _merge(connection: sa.Connection, table: str, part: Sequence[StoredRow], version: int, *, anew: bool) -> None:
    """Merge rows into a table of chunks, or copy them directly if it is new."""
    raw: Any = connection.connection.cursor()
    with raw as cursor:
        if anew:
            tables.copy_in(cursor, table, part, version)
            return
        fields = ", ".join(tables.FIELDS)
        cursor.execute(f"CREATE TEMP TABLE incoming AS SELECT {fields} FROM {table} LIMIT 0")
        tables.copy_in(cursor, "incoming", part, version)
        fresh = ", ".join(f"{field} = excluded.{field}" for field in tables.FIELDS if field != "id")
        cursor.execute(
            f"INSERT INTO {table} ({fields}) SELECT {fields} FROM incoming ON CONFLICT (id) DO UPDATE SET {fresh}"
        )
        cursor.execute("DROP TABLE incoming")


def _index(connection: sa.Connection, table: str, *, anew: bool) -> None:
    """Create the indexes on chunks, and on their vectors once there are many."""
    for statement in tables.chunk_indexes(table) if anew else ():
        connection.exec_driver_sql(statement)
    size = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
    if size > FEW:
        connection.exec_driver_sql(
            "SELECT set_config('maintenance_work_mem', %(most)s, true) WHERE "
            "pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes(%(most)s)",
            {"most": BUILD_MEMORY},
        )
        connection.exec_driver_sql(
            f"CREATE INDEX IF NOT EXISTS {table}_vectors ON {table} USING hnsw (vector vector_l2_ops)"
        )


def _drop(connection: sa.Connection, name: str) -> None:
    delete = f"DELETE FROM ragfilter_collections WHERE name = %(name)s RETURNING {COLUMNS}"
    for row in connection.exec_driver_sql(delete, {"name": name}).all():
        connection.exec_driver_sql(f"DROP TABLE {CollectionRow(*row).table}")
