"""PostgreSQL as a store of collections, each behind two protocols: `Collection` and `RuleStore`.

Vectors have unit length, and distances are squared (`l2`, 0..4), as in a folder. Every change to a collection is one
transaction, all or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from hashlib import blake2b
from typing import Any

from ragfilter.basics.threads import SharedCache
from ragfilter.errors import CollectionMissing, WorkspaceLocked, extra
from ragfilter.model import Chunk, Space
from ragfilter.protocols import Catalogue, Vectors, Where
from ragfilter.stores.base import check_name, pages
from ragfilter.stores.copies import Bars, CopySummary, StoredRow, text_key, with_rule
from ragfilter.stores.postgres import search, tables
from ragfilter.stores.postgres.search import RowCollection, SqlSearch, VectorDatabase
from ragfilter.stores.postgres.tables import COLLECTIONS, COLUMNS, SEARCHED_TEXT

with extra("postgres"):
    import sqlalchemy as sa
    from sqlalchemy.dialects import postgresql

RULES_KEPT = 4
BUILD_MEMORY = "1GB"
"""Memory limit for building an index, unless the server's own setting is larger. 50,000 vectors of
384 dimensions take 80 MB; with too little memory, building is much slower."""
WRITE_PART = 5_000


class PgCollection(RowCollection):
    """One collection. Each call looks it up by name, so it survives re-indexing."""

    _store: PgStore

    ours = True
    space: Space = "l2"
    most_catalogued = 100_000
    """Maximum number of chunks kept in memory without their texts; of larger collections, only the distinct rules."""

    @property
    def embedder(self) -> str:
        return str(self.raw().embedder)

    @property
    def content(self) -> str:
        """The fingerprint of the indexed content."""
        return str(self.raw().content)

    @property
    def version(self) -> str:
        row = self.raw()
        return f"{row.id}:{row.version}"

    def count(self) -> int:
        return self._count(self.raw())

    def search(self, ids: Sequence[str] | None, where: Where | None) -> SqlSearch:
        row = self.raw()
        admits, parameters = tables.condition(where or Where())
        if ids is not None:
            admits, parameters = (f"{admits} AND c.id = ANY(%(ids)s)", parameters | {"ids": tables.holdable(ids)})
        return SqlSearch(
            tables.chunks_of(row),
            "c.id",
            "c.vector <-> %(query)s::vector",
            "vector_l2_squared_distance(c.vector, %(query)s::vector)",
            admits,
            parameters,
            row.dimension,
            self._count(row, where),
            self._count(row),
        )

    def known_chunks(self, ids: Sequence[str]) -> Iterator[Chunk]:
        return map(tables.to_chunk, self._get(ids, tables.WHOLE))

    def known_vectors(self, ids: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        return ((i, tables.read(text)) for i, text in self._get(ids, "c.id, c.vector::text"))

    def entries(self) -> Catalogue:
        """Every chunk by id without text, whatever their number. Reads only changes since the last read."""
        now = self.snapshot()
        row = now.raw()
        since, before = self._store.catalogues.get(row.id, (0, Catalogue()))
        if since == row.version:
            return before
        entries = Catalogue({**before, **dict(now._read_entries(None, since))})
        # Under the version before the read, so that later writes are read again.
        self._store.catalogues[row.id] = (row.version, entries)
        return entries

    def distinct_rules(self) -> tuple[str, ...]:
        row = self.raw()
        query = (
            f"SELECT r.text FROM ragfilter_rules r WHERE EXISTS "
            f"(SELECT FROM {tables.chunks_of(row)} c WHERE c.rule = r.key) ORDER BY r.key"
        )
        return self._store.distinct_rules.of(
            (row.id, row.version), lambda: tuple(text for (text,) in self._store.read(query))
        )

    def _read_entries(self, ids: Sequence[str] | None, since: int = 0) -> Iterator[tuple[str, Chunk]]:
        return ((row[0], tables.to_entry(row)) for row in self._get(ids, tables.ENTRY, since))

    def transaction(self) -> AbstractContextManager[None]:
        """One transaction with the journal of the same workspace, in this thread."""
        return self._store.transaction()

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        """Replace rules, all or none."""
        with self._store.changing(self._name) as (connection, row):
            self._store.add_rules(connection, filter(None, rules.values()))
            update = (
                f"UPDATE {tables.chunks_of(row)} c SET rule = new.rule, edited = %(version)s "
                "FROM unnest(%(ids)s::text[], %(rules)s::bytea[]) AS new (id, rule) "
                "WHERE c.id = new.id RETURNING c.id"
            )
            values = {
                "ids": list(map(tables.plain, rules)),
                "rules": [tables.rule_key(rule) if rule else None for rule in rules.values()],
                "version": row.version,
            }
            self.check_known(rules, connection.exec_driver_sql(update, values).scalars())

    def matching(self, query: str, n: int, *, where: Where | None = None) -> list[tuple[str, float]]:
        """Up to `n` pairs (id, rank) from PostgreSQL's text search for any word of the query."""
        admits, parameters = tables.condition(where or Where())
        sql = (
            f"SELECT c.id, ts_rank_cd({SEARCHED_TEXT}, q, 1) AS score "
            f"FROM {tables.chunks_of(self.raw())} c, "
            "(SELECT replace(plainto_tsquery('english', %(words)s)::text, '&', '|')::tsquery AS q)"
            f" AS asked WHERE {SEARCHED_TEXT} @@ q AND {admits} "
            f'ORDER BY score DESC, c.id COLLATE "C" LIMIT {n}'
        )
        pairs = self._store.read(sql, parameters | {"words": tables.plain(query)})
        return [(i, float(score)) for i, score in pairs]

    def _count(self, row: sa.Row[Any], where: Where | None = None) -> int:
        """The number of chunks of this version that meet the condition; counted once."""
        admits, parameters = tables.condition(where or Where())
        key = (row.id, row.version, admits, repr(parameters))
        query = f"SELECT count(*) FROM {tables.chunks_of(row)} c WHERE {admits}"
        return self._store.counts.of(key, lambda: self._store.read(query, parameters)[0][0])

    def _get(self, ids: Sequence[str] | None, fields: str, since: int = 0) -> Sequence[Any]:
        """These fields of the known ones among these chunks, or of all that changed `since` a version, in order."""
        condition, wanted = "c.edited > %(wanted)s", since if ids is None else tables.holdable(ids)
        if ids is not None:
            condition = "c.id = ANY(%(wanted)s)"
        query = (
            f"SELECT {fields} FROM {tables.chunks_of(self.raw())} c "
            f"LEFT JOIN ragfilter_rules r ON r.key = c.rule WHERE {condition} ORDER BY c.place"
        )
        return self._store.read(query, {"wanted": wanted}) if wanted != [] else ()


class PgStore(VectorDatabase[PgCollection]):
    """The collections of a workspace in PostgreSQL, with caches. Upgrades its tables to the newest version.
    Thread-safe. Raises StoreError."""

    kind = PgCollection

    def __init__(self, address: str) -> None:
        self.versions: dict[int, int] = {}
        """The newest version seen, by the number of a collection."""
        self.distinct_rules: SharedCache[tuple[str, ...]] = SharedCache(RULES_KEPT)
        super().__init__(address)

    def _prepare(self) -> None:
        with self.writing() as connection:
            tables.upgrade(connection)
        super()._prepare()

    def names(self) -> list[str]:
        return list(self.changed())

    def look_up(self, name: str) -> sa.Row[Any]:
        """The registration of a collection. Raises CollectionMissing."""
        query = f"SELECT {COLUMNS} FROM ragfilter_collections WHERE name = %(name)s"
        registrations = self.read(query, {"name": tables.plain(name)})
        if not registrations:
            raise self._missing(name)
        row: sa.Row[Any] = registrations[0]
        self.versions[row.id] = max(row.version, self.versions.get(row.id, 0))
        return row

    def outdated(self, version: str) -> bool:
        """Whether a collection has changed since this version, as far as this process saw. Does not query the store."""
        number, _, count = version.partition(":")
        return number.isdigit() and self.versions.get(int(number), 0) > int(count)

    def summary(self, name: str) -> CopySummary:
        """The summary of a collection, empty if there is none."""
        try:
            row = self.look_up(name)
        except CollectionMissing:
            return CopySummary()
        chunks = self.read(f"SELECT id, fingerprint, clearance_as_given FROM {tables.chunks_of(row)}")
        return CopySummary(row.embedder, {i: mark for i, mark, _ in chunks}, {i: text for i, _, text in chunks})

    @contextmanager
    def changing(self, name: str) -> Iterator[tuple[sa.Connection, sa.Row[Any]]]:
        """An exclusive transaction that gives a collection its next version. Raises CollectionMissing."""
        next_version = COLLECTIONS.update().filter_by(name=name).values(version=COLLECTIONS.c.version + 1)
        with self.writing() as connection:
            row = connection.execute(next_version.returning(*COLLECTIONS.c)).one_or_none()
            if row is None:
                raise self._missing(name)
            yield connection, row

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
        values = {"name": target, "embedder": embedder, "dimension": len(batch[0].vector)}
        new = postgresql.insert(COLLECTIONS).values(**values, content="", version=0, removed=0).on_conflict_do_nothing()
        with self.transaction(), self.writing() as connection:
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
            created = connection.execute(new.returning(COLLECTIONS.c.id)).first() is not None
            # From here on, edits of rules wait.
            with suppress(CollectionMissing), self.changing(name):
                pass
            with self.changing(target) as (_, row):
                table = tables.chunks_of(row)
                if created:
                    connection.exec_driver_sql(tables.chunk_table(table, row.dimension))
                edited = rules()
                batch = [with_rule(each, edited) for each in batch]
                self.add_rules(connection, (each.chunk.rule for each in batch if each.chunk.rule))
                for part in pages(batch, WRITE_PART):
                    _merge(connection, table, part, row.version, anew=created)
                    progress(len(part))
                _index(connection, table, anew=created)
                if reset:
                    _drop(connection, name)
                done = {"name": name, "content": content, "changed": sa.func.now()}
                connection.execute(COLLECTIONS.update().filter_by(id=row.id).values(**done))

    def change_clearances(self, name: str, bars: Mapping[str, Bars]) -> None:
        """Change the clearances of chunks at once. Their fingerprints stay, so their records still
        count as changed; the content has no fingerprint until they are indexed."""
        fresh = [
            {"id": i, "level": level, "department": tables.plain(of or "").strip(), "said": said and tables.plain(said)}
            for i, (level, of, said) in bars.items()
        ]
        table, values = tables.chunks_of(self.look_up(name)), {"fresh": json.dumps(fresh)}
        new = "json_to_recordset(%(fresh)s::json) AS new (id text, level bigint, department text, said text)"
        differs = "c.id = new.id AND (c.clearance, c.department) IS DISTINCT FROM (new.level, new.department)"
        # Looked at first, because a change makes every session ask again.
        if not self.read(f"SELECT 1 FROM {table} c, {new} WHERE {differs} LIMIT 1", values):
            return
        with self.changing(name) as (connection, row):
            changes = "clearance = new.level, department = new.department, clearance_as_given = new.said"
            update = f"UPDATE {table} c SET {changes}, edited = {row.version} FROM {new} WHERE {differs}"
            connection.exec_driver_sql(update, values)
            connection.execute(COLLECTIONS.update().filter_by(id=row.id).values(content=""))

    def vectors_of(self, name: str, passages: Iterable[str]) -> dict[str, Vectors]:
        """The vectors of these passages that a collection has, by passage."""
        by_key = {text_key(passage): passage for passage in passages}
        mine = f"FROM {tables.chunks_of(self.look_up(name))} WHERE passage = ANY(%(keys)s)"
        pairs = self.read(f"SELECT DISTINCT ON (passage) passage, vector::text {mine}", {"keys": list(by_key)})
        return {by_key[key]: tables.read(text) for key, text in pairs}

    def texts(self, name: str) -> list[Chunk]:
        """The chunks of a collection with only id, title and text."""
        table = tables.chunks_of(self.look_up(name))
        text_rows = self.read(f"SELECT id, text, title FROM {table} ORDER BY place")
        return [Chunk(i, text, title=title) for i, text, title in text_rows]

    def changed(self) -> dict[str, datetime]:
        """When each collection was last indexed."""
        query = 'SELECT name, changed FROM ragfilter_collections ORDER BY name COLLATE "C"'
        return dict(map(tuple, self.read(query)))

    def rename(self, name: str, new: str) -> None:
        """Rename a collection. Raises CollectionMissing."""
        with self.changing(name) as (connection, row):
            connection.execute(COLLECTIONS.update().filter_by(id=row.id).values(name=new))

    def delete(self, name: str) -> None:
        """Delete a collection if it exists."""
        with self.writing() as connection:
            _drop(connection, name)

    @contextmanager
    def only_one(self, name: str) -> Iterator[None]:
        """Lock a collection against indexing and changes by any other process or thread. Raises WorkspaceLocked."""
        key = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)
        with self._guard(), self._reading.connect() as connection:
            if not connection.execute(sa.select(sa.func.pg_try_advisory_lock(key))).scalar_one():
                message = f"Collection {name!r} is already being indexed."
                raise WorkspaceLocked(message, remedy="Wait until that is done.")
            try:
                yield
            finally:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(key)))

    @staticmethod
    def add_rules(connection: sa.Connection, rules: Iterable[str]) -> None:
        """Add these texts to the distinct rules."""
        # In order, so that no two transactions wait for each other.
        texts = sorted({*map(tables.plain, rules)})
        if texts:
            connection.exec_driver_sql(
                "INSERT INTO ragfilter_rules SELECT * FROM unnest(%(keys)s::bytea[], %(texts)s::text[]) "
                "ON CONFLICT DO NOTHING",
                {"keys": list(map(tables.rule_key, texts)), "texts": texts},
            )

    def _missing(self, name: str) -> CollectionMissing:
        message = f"The collection {name!r} is not in {self.where} (any more)."
        return CollectionMissing(message, remedy="List the collections, or index it again.")


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
    if size > search.FEW:
        connection.exec_driver_sql(
            "SELECT set_config('maintenance_work_mem', %(most)s, true) WHERE "
            "pg_size_bytes(current_setting('maintenance_work_mem')) < pg_size_bytes(%(most)s)",
            {"most": BUILD_MEMORY},
        )
        connection.exec_driver_sql(
            f"CREATE INDEX IF NOT EXISTS {table}_vectors ON {table} USING hnsw (vector vector_l2_ops)"
        )


def _drop(connection: sa.Connection, name: str) -> None:
    for row in connection.execute(COLLECTIONS.delete().filter_by(name=name).returning(COLLECTIONS.c.id)).all():
        connection.exec_driver_sql(f"DROP TABLE {tables.chunks_of(row)}")
