"""One collection in PostgreSQL behind two protocols: `Collection` and `RuleStore`.

Its vectors have unit length, and distances are squared (`l2`, 0..4), as in a folder. Searches of a small collection, of
given ids, or with a condition that few chunks meet go row by row, which is exact. Others use the index; if it finds too
few, an exact search follows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from math import ceil, log10
from typing import Any, NamedTuple

from ragfilter.model import Chunk, Space, by_distance
from ragfilter.protocols import Catalogue, Vectors, Where
from ragfilter.stores.base import ChunkedCollection, CollectionInfo, query_vector
from ragfilter.stores.postgres import tables
from ragfilter.stores.postgres.connection import CollectionRow, PgDatabase, VectorDatabase
from ragfilter.stores.postgres.tables import SEARCHED_TEXT

FEW = 10_000
"""Maximum number of rows to compare one by one, which takes 10 ms."""
CATALOGUED = 100_000
"""Maximum number of chunks kept in memory without their texts; of larger collections, only the distinct rules are."""
WIDEST_SEARCH = 1000
"""The widest search of a pgvector index, and the most rows that it then finds."""
MARGIN = 120
"""The extra width of an index search for each tenfold increase of rows above 1,000."""


class SqlSearch(NamedTuple):
    """A search as SQL over a table `c`, with a vector as the parameter `query`: the output per row,
    the index's order, and the condition that `admits` a row (`there` of `total` rows)."""

    table: str
    key: str
    by: str
    distance: str
    admits: str
    parameters: tables.Parameters
    dimension: int
    there: int
    total: int


def search_width(n: int, there: int, total: int) -> int:
    """The width of an index search for `n` admitted rows that finds 998 of 1,000 (`benchmarks/bench_postgres.py`)."""
    return min(WIDEST_SEARCH, ceil(n * total / there + MARGIN * max(1, log10(total / 1000))))


class RowCollection(ChunkedCollection):
    """A collection whose chunks are the rows of a table."""

    withheld = False
    incomplete = ""

    def __init__(self, store: VectorDatabase, name: str) -> None:
        super().__init__(name)
        self._store = store

    @abstractmethod
    def search(self, ids: Sequence[str] | None, where: Where | None) -> SqlSearch:
        """The search among chunks that meet a condition, or only among `ids`."""

    def nearest(
        self, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        if n < 1:
            return []
        table, key, by, distance, admits, parameters, dimension, there, total = self.search(ids, where)
        parameters["query"] = tables.written(query_vector(vector, dimension))
        wanted = min(n, there)
        search = f"SELECT {key} AS id, {distance} AS d FROM {table} c WHERE {admits} "
        if ids is None and wanted <= WIDEST_SEARCH and there > FEW:
            parameters["wanted"] = n
            by_index = f"{search}ORDER BY {by} LIMIT %(wanted)s"
            pairs = self._store.read(by_index, parameters, width=search_width(n, there, total))
            if len(pairs) >= wanted:
                return sorted(pairs, key=by_distance)
        exact = f'{search}ORDER BY d, {key} COLLATE "C" LIMIT {wanted}'
        return [(i, d) for i, d in self._store.read(exact, parameters)]


class PgCollection(RowCollection):
    """One collection. Each call looks it up by name, so it survives re-indexing."""

    ours = True
    space: Space = "l2"

    def __init__(self, store: PgDatabase, name: str, pinned: CollectionRow | None = None) -> None:
        super().__init__(store, name)
        self._store: PgDatabase = store
        self._pinned = pinned

    def snapshot(self) -> PgCollection:
        """A copy pinned for one query, so that the collection is not looked up again."""
        return PgCollection(self._store, self._name, self.row)

    @property
    def row(self) -> CollectionRow:
        """Its row in the list of collections. Raises CollectionMissing."""
        return self._pinned or self._store.row(self._name)

    @property
    def embedder(self) -> str:
        """The embedding model that made the vectors."""
        return self.row.embedder

    @property
    def content(self) -> str:
        """The fingerprint of the indexed content."""
        return self.row.content

    @property
    def version(self) -> str:
        row = self.row
        return f"{row.number}:{row.version}"

    def check_not_empty(self) -> None:
        """Raise CollectionMissing if it does not exist; existing collections have chunks."""
        _ = self.row

    def info(self) -> CollectionInfo:
        row = self.row
        return CollectionInfo(self._name, self._count(row), "l2", row.embedder, True, "")

    def count(self) -> int:
        return self._count(self.row)

    def search(self, ids: Sequence[str] | None, where: Where | None) -> SqlSearch:
        row = self.row
        admits, parameters = tables.condition(where or Where())
        if ids is not None:
            admits, parameters = (f"{admits} AND c.id = ANY(%(ids)s)", parameters | {"ids": tables.holdable(ids)})
        return SqlSearch(
            row.table,
            "c.id",
            "c.vector <-> %(query)s::vector",
            "vector_l2_squared_distance(c.vector, %(query)s::vector)",
            admits,
            parameters,
            row.dimension,
            self._count(row, where),
            self._count(row),
        )

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        by_id = {row[0]: tables.to_chunk(row) for row in self._get(ids, tables.WHOLE)}
        return {i: by_id[i] for i in ids if i in by_id}

    def known_vectors(self, ids: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        return ((i, tables.read(text)) for i, text in self._get(ids, "c.id, c.vector::text"))

    def catalogue(self) -> Catalogue | None:
        """Every chunk by id without text; None if the collection is too large for that."""
        large = self._count(self.row) > min(self._store.catalogue_limit, CATALOGUED)
        return None if large else self.entries()

    def entries(self) -> Catalogue:
        """Every chunk by id without text, whatever their number. Reads only changes since the last read."""
        row = self.row
        since, before = self._store.catalogues.get(row.number, (0, Catalogue()))
        if since == row.version:
            return before
        changed = self._store.read(
            f"SELECT {tables.ENTRY} FROM {row.table} c "
            "LEFT JOIN ragfilter_rules r ON r.key = c.rule "
            "WHERE c.edited > %(since)s ORDER BY c.place",
            {"since": since},
        )
        entries = Catalogue({**before, **{each[0]: tables.to_entry(each) for each in changed}})
        # Under the version before the read, so that later writes are read again.
        self._store.catalogues[row.number] = (row.version, entries)
        return entries

    def distinct_rules(self) -> tuple[str, ...]:
        row = self.row
        query = (
            f"SELECT r.text FROM ragfilter_rules r WHERE EXISTS "
            f"(SELECT FROM {row.table} c WHERE c.rule = r.key) ORDER BY r.key"
        )
        return self._store.distinct_rules.of(
            (row.number, row.version), lambda: tuple(text for (text,) in self._store.read(query))
        )

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        return dict(self._get(ids, "c.id, r.text"))

    def transaction(self) -> AbstractContextManager[None]:
        """One transaction with the journal of the same workspace, in this thread."""
        return self._store.transaction()

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        """Replace rules, all or none."""
        with self._store.changing(self._name) as (connection, row):
            new_rules = {i: rule or None for i, rule in rules.items()}
            self._store.add_rules(connection, [rule for rule in new_rules.values() if rule])
            update = (
                f"UPDATE {row.table} c SET rule = new.rule, edited = %(version)s "
                "FROM unnest(%(ids)s::text[], %(rules)s::bytea[]) AS new (id, rule) "
                "WHERE c.id = new.id RETURNING c.id"
            )
            values = {
                "ids": list(map(tables.plain, new_rules)),
                "rules": [tables.rule_key(rule) if rule else None for rule in new_rules.values()],
                "version": row.version,
            }
            known = {i for (i,) in connection.exec_driver_sql(update, values)}
            self.check_known(new_rules, known)

    def matching(self, query: str, n: int, *, where: Where | None = None) -> list[tuple[str, float]]:
        """Up to `n` pairs (id, rank) from PostgreSQL's text search for any word of the query."""
        admits, parameters = tables.condition(where or Where())
        sql = (
            f"SELECT c.id, ts_rank_cd({SEARCHED_TEXT}, q, 1) AS score "
            f"FROM {self.row.table} c, "
            "(SELECT replace(plainto_tsquery('english', %(words)s)::text, '&', '|')::tsquery AS q)"
            f" AS asked WHERE {SEARCHED_TEXT} @@ q AND {admits} "
            f'ORDER BY score DESC, c.id COLLATE "C" LIMIT {n}'
        )
        pairs = self._store.read(sql, parameters | {"words": tables.plain(query)})
        return [(i, float(score)) for i, score in pairs]

    def _count(self, row: CollectionRow, where: Where | None = None) -> int:
        """The number of chunks of this version that meet the condition; counted once."""
        admits, parameters = tables.condition(where or Where())
        key = (row.number, row.version, admits, repr(parameters))
        query = f"SELECT count(*) FROM {row.table} c WHERE {admits}"
        return self._store.counts.of(key, lambda: self._store.read(query, parameters)[0][0])

    def _get(self, ids: Sequence[str], fields: str) -> Iterator[tuple[Any, ...]]:
        """Yield these fields of each known chunk."""
        query = (
            f"SELECT {fields} FROM {self.row.table} c "
            "LEFT JOIN ragfilter_rules r ON r.key = c.rule WHERE c.id = ANY(%(ids)s)"
        )
        known = tables.holdable(ids)
        yield from self._store.read(query, {"ids": known}) if known else ()
