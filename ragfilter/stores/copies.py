"""Copies of a collection in Parquet files next to the store: of the indexed content, and of its catalogue.

Source: docs/design.md#chroma (a damaged index cannot be rebuilt from the log). Our own copy holds the records from the
sources and their vectors. Edits of rules are in the journal. The catalogue's copy lets a large collection open quickly:
reading 100,000 entries takes seconds from Chroma, but tenths of a second from this file. It is valid for one version of
the collection, and every write gives the collection a new version."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from itertools import pairwise, repeat
from pathlib import Path
from typing import Any

import numpy as np

from ragfilter.basics.files import explain_os_error
from ragfilter.basics.threads import collecting_nothing
from ragfilter.errors import StoreError, extra
from ragfilter.model import Chunk, readable_level
from ragfilter.protocols import Catalogue, Vectors

with extra("chroma"):
    import pyarrow as pa
    import pyarrow.parquet as pq

log = logging.getLogger(__name__)

_TYPES = {"page": pa.int64(), "clearance": pa.int64(), "refs": pa.list_(pa.string())}
_NAMES = "id text title type source page refs clearance clearance_as_given department rule fingerprint metadata"
FIELDS = pa.schema([(name, _TYPES.get(name, pa.string())) for name in _NAMES.split()])
COLUMNS = (*FIELDS.names, "vector")
REPLACE = "Move it away, then index the source again and replace the collection."

WORTH = 10_000
"""Smaller collections have no file, since reading them from the store is fast enough."""
REPEATED = ("type", "source", "department", "rule")
VERSION = b"version"

Bars = tuple[int | None, str | None, str | None]
BARS = ["clearance", "department", "clearance_as_given"]
"""The columns that hide a chunk; the last has the text of an unreadable clearance or department."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A chunk to store, with its vector (unit length, shape (dimension,)). In a copy, the chunk is
    as in its source, and has the fingerprint of its record."""

    chunk: Chunk
    vector: Vectors
    clearance_as_given: str | None = None
    fingerprint: str = ""


def with_rule(row: StoredRow, rules: Mapping[str, str | None]) -> StoredRow:
    """A row with its edited rule, if there is one."""
    i = row.chunk.id
    return replace(row, chunk=replace(row.chunk, rule=rules[i])) if i in rules else row


@dataclass(frozen=True, slots=True)
class CopySummary:
    """A copy without texts and vectors, by chunk id: `fingerprints`, and `as_given` the unreadable clearances as text.
    Without chunks, there is no copy."""

    embedder: str = ""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    as_given: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def content(self) -> str:
        return content_fingerprint(self.embedder, self.fingerprints)


def content_fingerprint(embedder: str, fingerprints: Mapping[str, str]) -> str:
    """The sha256 of a collection's content, independent of its order."""
    digest = hashlib.sha256(embedder.encode())
    for item in sorted(fingerprints.items()):
        digest.update(repr(item).encode())
    return digest.hexdigest()


class Copies:
    """Our own copies of collections, one file each in `folder`. Raises StoreError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        return self._folder / f"{name}.parquet"

    def replace(self, name: str, rows: Sequence[StoredRow], *, embedder: str) -> None:
        """Replace a copy atomically: readers see the old or the new copy. Requires at least one row."""
        names = [field.name for field in fields(Chunk) if field.name in FIELDS.names]
        records = []
        for row in rows:
            record = {name: getattr(row.chunk, name) for name in names}
            record["metadata"] = json.dumps(dict(row.chunk.metadata))
            records.append(record | {"fingerprint": row.fingerprint, "clearance_as_given": row.clearance_as_given})
        table = pa.Table.from_pylist(records, schema=FIELDS)
        vectors = _vector_array([row.vector for row in rows])
        _replace(self.path(name), table.append_column("vector", vectors), embedder)

    def change_clearances(self, name: str, bars: Mapping[str, Bars]) -> None:
        """Change the clearances of chunks. Their fingerprints stay, so their records still count as changed. An
        unreadable copy is left alone, since nothing can be restored from it."""
        try:
            table = _read(self.path(name))
        except StoreError:
            return
        if table is None:
            return
        stored_bars = list(zip(*(table[column].to_pylist() for column in BARS), strict=True))
        wanted = [bars.get(i, old) for i, old in zip(table["id"].to_pylist(), stored_bars, strict=True)]
        if wanted == stored_bars:
            return
        for bar, column in zip(BARS, zip(*wanted, strict=True), strict=True):
            field = FIELDS.field(bar)
            table = table.set_column(table.schema.get_field_index(bar), field, pa.array(column, field.type))
        _replace(self.path(name), table, _embedder(table))

    def read(self, name: str) -> list[StoredRow]:
        """Every row of a copy; empty if there is none. Raises StoreError if it is damaged, as do the methods below."""
        table = _read(self.path(name))
        if table is None:
            return []
        rows = []
        for row, vector in zip(table.drop_columns(["vector"]).to_pylist(), _vectors(table), strict=True):
            fingerprint, as_given = row.pop("fingerprint"), row.pop("clearance_as_given")
            metadata = json.loads(row["metadata"])
            chunk = Chunk(**{**row, "refs": tuple(row["refs"]), "metadata": metadata})
            rows.append(StoredRow(chunk, vector, as_given, fingerprint))
        return rows

    def summary(self, name: str) -> CopySummary:
        """The summary of a copy, empty if there is none."""
        table = _read(self.path(name), ["id", "fingerprint", "clearance_as_given"])
        if table is None:
            return CopySummary()
        ids, *values = (table[name].to_pylist() for name in ("id", "fingerprint", "clearance_as_given"))
        return CopySummary(_embedder(table), *(dict(zip(ids, each, strict=True)) for each in values))

    def texts(self, name: str) -> list[Chunk]:
        """The chunks of a copy with only id, title and text."""
        table = _read(self.path(name), ["id", "title", "text"])
        rows = [] if table is None else table.to_pylist()
        return [Chunk(row["id"], row["text"] or "", title=row["title"] or "") for row in rows]

    def changed(self) -> dict[str, datetime]:
        """When each collection was last indexed."""
        times = {}
        for path in sorted(self._folder.glob("*.parquet")):
            # It may have been deleted in the meantime.
            with suppress(OSError):
                times[path.stem] = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return times

    def rename(self, old: str, new: str) -> None:
        """Rename a copy, if there is one."""
        failure = f"The copy {self.path(old)} cannot be renamed"
        with explain_os_error(failure, "Check the permissions of its folder.", StoreError):
            self.delete(new)
            if self.path(old).exists():
                self.path(old).rename(self.path(new))

    def delete(self, name: str) -> None:
        """Delete a copy, if there is one."""
        self.path(name).unlink(missing_ok=True)


def text_key(text: str) -> str:
    """The key under which the vector of `text` is stored."""
    return hashlib.sha256(text.encode()).hexdigest()


def _vector_array(vectors: Sequence[Vectors]) -> Any:
    flat = pa.array(np.concatenate(vectors), pa.float32())
    return pa.FixedSizeListArray.from_arrays(flat, vectors[0].shape[0])


def _vectors(table: Any) -> Iterable[Vectors]:
    flat = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return list(flat.reshape(table.num_rows, -1).astype(np.float32, copy=False))


def _embedder(table: Any) -> str:
    return bytes((table.schema.metadata or {}).get(b"embedder", b"")).decode()


def _read(path: Path, columns: list[str] | None = None) -> Any:
    """Read the copy at `path`, or some of its columns; None if it is missing."""
    if not path.exists():
        return None
    try:
        # Pass a file handle, since some versions take a path with unusual characters for a URL.
        with path.open("rb") as file:
            parquet = pq.ParquetFile(file)
            if parquet.schema_arrow.names != list(COLUMNS):
                raise StoreError(f"The copy {path} has another schema.", remedy=REPLACE, action="replace")
            return parquet.read(columns)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise StoreError(f"The copy {path} cannot be read: {error}.", remedy=REPLACE, action="replace") from error


def _replace(path: Path, table: Any, embedder: str | None = None) -> None:
    """Replace the table at `path`, with the name of the model that made its vectors."""
    if embedder is not None:
        table = table.replace_schema_metadata({b"embedder": embedder.encode()})
    fresh = path.with_name(f"{path.name}.new")
    try:
        with fresh.open("wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        message = f"The copy {path} cannot be written: {error.strerror}."
        raise StoreError(message, remedy="Free up disk space or check the folder's permissions.") from error


def read_catalogue(path: Path, version: str) -> Catalogue | None:
    """The catalogue of this version; None if the file has another version or cannot be read."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file:
            # `pq.read_table` would import pandas, which takes longer than reading.
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
    with collecting_nothing():
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
            **{name: pa.array([getattr(c, name) for c in every], pa.string()).dictionary_encode() for name in REPEATED},
        }
    ).replace_schema_metadata({VERSION: version.encode()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, table)
    except (OSError, StoreError) as error:
        log.warning("%s", error)


def _chunks(n: int, columns: Mapping[str, Iterable[Any]]) -> list[Chunk]:
    """Make `n` chunks from `columns`, one for each field, in a fifth of the time of `n` calls of `Chunk`."""
    chunks = [object.__new__(Chunk) for _ in range(n)]
    for each in fields(Chunk):
        deque(map(getattr(Chunk, each.name).__set__, chunks, columns[each.name]), maxlen=0)
    return chunks


def _tuples(column: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the values of a column of lists as tuples, without making lists first."""
    lists = column.combine_chunks()
    values = lists.values.to_pylist()
    ends = pairwise(lists.offsets.to_pylist())
    return (tuple(values[start:end]) if start < end else () for start, end in ends)


def _shared(column: Any) -> list[Any]:
    """The values of a column; equal values are the same object."""
    coded = column.combine_chunks()
    coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
    values = coded.dictionary.to_pylist()
    return [None if i is None else values[i] for i in coded.indices.to_pylist()]
