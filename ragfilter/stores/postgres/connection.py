"""The connection for reads and writes. It turns all errors into our own, and every read has a deadline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

from ragfilter.basics.database import Book
from ragfilter.basics.threads import SharedCache
from ragfilter.errors import CollectionMissing, StoreError, extra
from ragfilter.protocols import Catalogue
from ragfilter.stores.base import Opening
from ragfilter.stores.postgres import tables

with extra("postgres"):
    import sqlalchemy as sa

COUNTS_KEPT = 1000
RULES_KEPT = 4
COLUMNS = "id, name, embedder, dimension, content, version"
ITERATIVE = (0, 8)
"""The first version of pgvector that searches an index until enough rows meet a condition."""


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """The row of a collection in `ragfilter_collections`, with the columns `COLUMNS`."""

    number: int
    name: str
    embedder: str
    dimension: int
    content: str
    version: int

    @property
    def table(self) -> str:
        """The name of the table for its chunks."""
        return f"ragfilter_chunks_{self.number}"


class VectorDatabase(Book):
    """A database with vectors. Thread-safe."""

    tables = ()

    def __init__(self, address: str) -> None:
        """Open the database at an address (``postgresql://…``). Raises InputError, StoreError, StoreUnavailable."""
        self.opening: Callable[[str], Opening] = lambda name: Opening()
        """How to open a foreign table."""
        super().__init__(address)

    def _prepare(self) -> None:
        self._searching = self._engine.execution_options(postgresql_readonly=True)
        installed = self.read("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        if not installed:
            raise StoreError(f"The database at {self.where} has no pgvector.", remedy="Name another database.")
        self._iterative = tuple(map(int, installed[0][0].split(".")[:2])) >= ITERATIVE

    def writing(self) -> AbstractContextManager[sa.Connection]:
        """This thread's transaction, or a new one."""
        return self._writing()

    def read(self, query: str, parameters: Mapping[str, Any] | None = None, *, width: int = 0) -> Sequence[Any]:
        """The rows of a query, which searches an index with this width. Raises StoreUnavailable at the deadline."""
        with self._connected(self._searching if width else None) as connection:
            if width:
                iterative = ", set_config('hnsw.iterative_scan', 'strict_order', true)" if self._iterative else ""
                settings = f"SELECT set_config('hnsw.ef_search', %(width)s, true){iterative}"
                connection.exec_driver_sql(settings, {"width": str(width)})
            result: Sequence[Any] = connection.exec_driver_sql(query, parameters).all()
            return result


class PgDatabase(VectorDatabase):
    """A workspace's database, with caches of collections. Upgrades its tables to the newest version. Thread-safe."""

    def __init__(self, address: str) -> None:
        self.catalogue_limit = inf
        self.catalogues: dict[int, tuple[int, Catalogue]] = {}
        """By the number of a collection, with the version to which they belong."""
        self.versions: dict[int, int] = {}
        """The newest version seen, by the number of a collection."""
        self.counts: SharedCache[int] = SharedCache(COUNTS_KEPT)
        self.distinct_rules: SharedCache[tuple[str, ...]] = SharedCache(RULES_KEPT)
        super().__init__(address)

    def _prepare(self) -> None:
        with self._writing() as connection:
            tables.upgrade(connection)
        super()._prepare()

    @contextmanager
    def changing(self, name: str) -> Iterator[tuple[sa.Connection, CollectionRow]]:
        """An exclusive transaction that gives a collection its next version. Raises CollectionMissing."""
        with self._writing() as connection:
            row = connection.exec_driver_sql(
                f"UPDATE ragfilter_collections SET version = version + 1 WHERE name = %(name)s RETURNING {COLUMNS}",
                {"name": name},
            ).one_or_none()
            if row is None:
                raise self.missing(name)
            yield connection, CollectionRow(*row)

    def row(self, name: str) -> CollectionRow:
        """The registration of a collection. Raises CollectionMissing."""
        query = f"SELECT {COLUMNS} FROM ragfilter_collections WHERE name = %(name)s"
        registrations = self.read(query, {"name": tables.plain(name)})
        if not registrations:
            raise self.missing(name)
        row = CollectionRow(*registrations[0])
        self.versions[row.number] = max(row.version, self.versions.get(row.number, 0))
        return row

    def missing(self, name: str) -> CollectionMissing:
        message = f"The collection {name!r} is not in {self.where} (any more)."
        return CollectionMissing(message, remedy="List the collections, or index it again.")

    @staticmethod
    def add_rules(connection: sa.Connection, rules: Sequence[str]) -> None:
        """Add these texts to the distinct rules."""
        if rules:
            texts = sorted({tables.plain(rule) for rule in rules})
            connection.exec_driver_sql(
                "INSERT INTO ragfilter_rules SELECT * FROM unnest(%(keys)s::bytea[], "
                "%(texts)s::text[]) ON CONFLICT DO NOTHING",
                {"keys": list(map(tables.rule_key, texts)), "texts": texts},
            )
