"""The catalogue in a file next to the store, so that a large collection opens quickly.

Reading 100,000 entries from Chroma takes seconds, and from this file tenths of a second. It is
valid for one version of the collection, and every write gives the collection a new version.
"""

from __future__ import annotations

import gc
import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

from ragfilter.basics.extras import extra
from ragfilter.model import Chunk, readable_level
from ragfilter.protocols import Catalogue

with extra("chroma"):
    import pyarrow as pa
    import pyarrow.parquet as pq

log = logging.getLogger(__name__)

WORTH = 10_000
"""Smaller collections are read from the store quickly enough."""
REPEATED = ("type", "source", "department", "rule")
VERSION = b"version"


def read_catalogue(path: Path, version: str) -> Catalogue | None:
    """The catalogue of this version; None if the file has another version or cannot be read."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file:
            # `pq.read_table` would import pandas, which takes longer than the reading.
            table = pq.ParquetFile(file).read()
    except (OSError, pa.ArrowException) as error:
        log.warning("%s cannot be read and is rebuilt: %s", path, error)
        return None
    if (table.schema.metadata or {}).get(VERSION) != version.encode():
        return None
    ids = table["id"].to_pylist()
    columns: dict[str, Iterable[Any]] = {
        "id": ids,
        "text": repeat(""),
        "title": table["title"].to_pylist(),
        "page": repeat(None),
        "refs": _tuples(table["refs"]),
        "clearance": map(readable_level, table["clearance"].to_pylist()),
        "loaded": repeat(False),
        "metadata": repeat({}),  # One for all: 100,000 would keep the garbage collector busy.
        **{name: _shared(table[name]) for name in REPEATED},
    }
    with _collecting_nothing():
        return Catalogue(zip(ids, _chunks(len(ids), columns), strict=True))


def write_catalogue(path: Path, version: str, chunks: Mapping[str, Chunk]) -> None:
    """Write the file if the catalogue is large enough. A failure is only logged."""
    if len(chunks) < WORTH:
        return
    every = chunks.values()
    table = pa.table(
        {
            "id": pa.array(chunks.keys(), pa.string()),
            "title": pa.array([c.title for c in every], pa.string()),
            "refs": pa.array([list(c.refs) for c in every], pa.list_(pa.string())),
            "clearance": pa.array([c.clearance for c in every], pa.int64()),
            **{
                name: pa.array([getattr(c, name) for c in every], pa.string()).dictionary_encode()
                for name in REPEATED
            },
        }
    ).replace_schema_metadata({VERSION: version.encode()})
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("wb") as file:
            pq.write_table(table, file)
        fresh.replace(path)
    except OSError as error:
        log.warning("%s cannot be written: %s", path, error.strerror)


def _chunks(n: int, columns: Mapping[str, Iterable[Any]]) -> list[Chunk]:
    """`n` chunks with the values of `columns`, one for each field. Filling them field by field
    takes a fifth of the time of `n` calls of `Chunk`."""
    made = [object.__new__(Chunk) for _ in range(n)]
    for each in fields(Chunk):
        deque(map(getattr(Chunk, each.name).__set__, made, columns[each.name]), maxlen=0)
    return made


@contextmanager
def _collecting_nothing() -> Iterator[None]:
    """Without garbage collection, which would look at all new chunks again and again."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _tuples(column: Any) -> Iterator[tuple[Any, ...]]:
    """The values of a column of lists, without a list of each."""
    lists = column.combine_chunks()
    values = lists.values.to_pylist()
    ends = pairwise(lists.offsets.to_pylist())
    return (tuple(values[start:end]) if start < end else () for start, end in ends)


def _shared(column: Any) -> list[Any]:
    """The values of a column, with equal ones as the same object."""
    coded = column.combine_chunks()
    coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
    values = coded.dictionary.to_pylist()
    return [None if i is None else values[i] for i in coded.indices.to_pylist()]
