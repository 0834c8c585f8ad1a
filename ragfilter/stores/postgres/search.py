"""What tables with vectors share: the database, and the search for the nearest rows.

Searches of a small collection, of given ids, or with a condition that few chunks meet go row by row, which is exact.
Others use the index; if it finds too few, an exact search follows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from math import ceil, log10
from typing import Any, NamedTuple, TypeVar

from ragfilter.basics.database import Book
from ragfilter.errors import StoreError
from ragfilter.model import by_distance
from ragfilter.protocols import Vectors, Where
from ragfilter.stores.base import ChunkedCollection, CollectionStore, query_vector
from ragfilter.stores.postgres import tables

ITERATIVE = (0, 8)
"""The first version of pgvector that searches an index until enough rows meet a condition."""
FEW = 10_000
"""Maximum number of rows to compare one by one, which takes 10 ms."""
WIDEST_SEARCH = 1000
"""The widest search of a pgvector index, and the most rows that it then finds."""
MARGIN = 120
"""The extra width of an index search for each tenfold increase of rows above 1,000."""


R = TypeVar("R", bound="RowCollection")


class VectorDatabase(Book, CollectionStore[R]):
    """A database with vectors. Thread-safe."""

    tables = ()

    def __init__(self, address: str) -> None:
        """Open the database at an address (``postgresql://…``). Raises InputError, StoreError, StoreUnavailable."""
        CollectionStore.__init__(self)
        Book.__init__(self, address)

    def _prepare(self) -> None:
        self._searching = self._engine.execution_options(postgresql_readonly=True)
        installed = self.read("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        if not installed:
            raise StoreError(f"The database at {self.where} has no pgvector.", remedy="Name another database.")
        self._iterative = tuple(map(int, installed[0][0].split(".")[:2])) >= ITERATIVE

    def read(self, query: str, parameters: Mapping[str, Any] | None = None, *, width: int = 0) -> Sequence[Any]:
        """The rows of a query, which searches an index with this width. Raises StoreUnavailable at the deadline."""
        with self._connected(self._searching if width else None) as connection:
            if width:
                iterative = ", set_config('hnsw.iterative_scan', 'strict_order', true)" if self._iterative else ""
                settings = f"SELECT set_config('hnsw.ef_search', %(width)s, true){iterative}"
                connection.exec_driver_sql(settings, {"width": str(width)})
            result: Sequence[Any] = connection.exec_driver_sql(query, parameters).all()
            return result


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

    _store: VectorDatabase[Any]

    withheld = False
    incomplete = ""

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
