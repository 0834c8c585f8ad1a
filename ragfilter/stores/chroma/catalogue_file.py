"""The catalogue in a file next to the store, so that a large collection opens quickly.

Reading 100,000 entries from Chroma takes seconds, and from this file tenths of a second. It is
valid for one version of the collection, and every write gives the collection a new version.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragfilter.basics.extras import extra
from ragfilter.model import Chunk
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
    columns: list[list[Any]] = [
        table["id"].to_pylist(),
        table["title"].to_pylist(),
        [tuple(refs) if refs else () for refs in table["refs"].to_pylist()],
        table["clearance"].to_pylist(),
        *(_shared(table[name]) for name in REPEATED),
    ]
    own: dict[str, Any] = {}  # One for all: 100,000 would keep the garbage collector busy.
    return Catalogue(
        {
            i: Chunk(i, "", title, kind, source, None, refs, level, department, rule, False, own)
            for i, title, refs, level, kind, source, department, rule in zip(*columns, strict=True)
        }
    )


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


def _shared(column: Any) -> list[Any]:
    """The values of a column, with equal ones as the same object."""
    coded = column.combine_chunks()
    coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
    values = coded.dictionary.to_pylist()
    return [None if i is None else values[i] for i in coded.indices.to_pylist()]
