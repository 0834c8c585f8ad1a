"""Copies a whole workspace to another place: a folder to PostgreSQL, or back.

What is there already and the same is left, so that an interrupted copy goes on; what is there and
another is never replaced. At the end, counts and checksums of both places are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Any

from ragfilter.basics.database import connect, in_utc
from ragfilter.basics.extras import extra
from ragfilter.basics.files import TextFiles
from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.protocols import Progress
from ragfilter.settings import config
from ragfilter.stores import copies, foreign
from ragfilter.stores.base import pages
from ragfilter.stores.copies import StoredRow, content_fingerprint
from ragfilter.stores.index import rebuild
from ragfilter.stores.manage import BOOKS, as_given, locked
from ragfilter.stores.workspace import Workspace

with extra("chroma"):
    import sqlalchemy as sa

PAGE = 1_000
TABLES = tuple(table for book in BOOKS for table in book.tables)
OTHER = "Name a workspace that is empty, or that this copy was begun in."


@dataclass(frozen=True, slots=True)
class Copied:
    """What a collection or a table has in both places. `new` is how much was copied now."""

    name: str
    count: int
    new: int
    checksum: str


def copy_workspace(
    source: Workspace, target: Workspace, progress: Callable[[str], Progress | None]
) -> tuple[Copied, ...]:
    """Copy every collection that ragfilter made, with its rules, labels, votes, runs and journal,
    and the saved settings.

    `progress` says who is told how far a collection has come. Raises InputError if the target has
    something else under the same name, and StoreError if what arrived is not what was sent.
    """
    if source.database_url == target.database_url:
        raise InputError("Both are the same workspace.", remedy="Name two.")
    if source.server is not None and source.server == target.server:
        raise InputError(
            "Both would keep their vectors in the same place.",
            remedy="Copy to or from a database: the server's URL holds for folders only.",
        )
    for workspace in (source, target):
        for book in BOOKS:
            book(workspace.database_url).close()
    for table in TABLES:
        _check_only_ours(table, source, target)
    names = [info.name for info in source.store().collections() if info.ours]
    done = [_copy_collection(name, source, target, progress(name)) for name in names]
    tables = (_copy_table(table, source, target) for table in TABLES)
    return (*done, *tables, _copy_files(source.files, target.files))


def _copy_collection(
    name: str, source: Workspace, target: Workspace, progress: Progress | None
) -> Copied:
    with locked(source, name), locked(target, name):
        sent = _checksum(name, source)
        count = source.store().collection(name).count()
        try:
            there = _checksum(name, target)
        except CollectionMissing:
            there = ""
        if there == sent:
            return Copied(name, count, 0, sent)
        if there:
            raise InputError(f"{name} is another collection in the target.", remedy=OTHER)
        rows = list(_rows(name, source))
        model = source.store().collection(name).embedder
        if (database := target.pg()) is not None:
            prints = {row.chunk.id: row.fingerprint for row in rows}
            database.put(
                name, rows, embedder=model, content=content_fingerprint(model, prints),
                progress=_counted(progress, len(rows)),
            )  # fmt: skip
    if database is None:
        copies.write_copy(target.copy_path(name), rows, embedder=model)
        rebuild(name, workspace=target, progress=progress)
    if _checksum(name, target) != sent:
        raise _differs(f"the collection {name}")
    return Copied(name, count, count, sent)


def _counted(progress: Progress | None, total: int) -> Callable[[int], None]:
    done = 0

    def add(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    return add


def _rows(name: str, workspace: Workspace) -> Iterator[StoredRow]:
    """What is stored of a collection, with the rules as they are now."""
    collection = workspace.store().collection(name)
    summary, given = workspace.summary(name), as_given(workspace, name)
    prints = summary.fingerprints if summary else {}
    for ids in pages(list(collection.entries()), PAGE):
        vectors = collection.vectors(ids)
        for vector, (i, chunk) in zip(vectors, collection.chunks(ids).items(), strict=True):
            yield StoredRow(chunk, vector, given.get(i), prints.get(i, ""))


def _checksum(name: str, workspace: Workspace) -> str:
    """The sha256 of every chunk and vector of a collection. Raises CollectionMissing."""
    collection = workspace.store().collection(name)
    digest = sha256()
    for ids in pages(sorted(collection.entries()), PAGE):
        vectors = collection.vectors(ids)
        for vector, chunk in zip(vectors, collection.chunks(ids).values(), strict=True):
            bare = replace(chunk, metadata={})
            fields = (bare.text, bare.rule, sorted(chunk.metadata.items()))
            digest.update(repr((bare, *fields)).encode())
            digest.update(vector.tobytes())
    return digest.hexdigest()


def _copy_table(table: sa.Table, source: Workspace, target: Workspace) -> Copied:
    sent, there = _read(table, source), _read(table, target)
    fresh = [row for key, row in sent.items() if key not in there]
    if fresh:
        engine = connect(target.database_url, "workspace")
        columns = table.columns.keys()
        with engine.begin() as connection:
            rows = [dict(zip(columns, row, strict=True)) for row in fresh]
            for page in pages(rows, PAGE):
                connection.execute(table.insert(), page)
            if engine.dialect.name == "postgresql" and "id" in columns:
                # Numbers that were given do not count in its sequence.
                counter = sa.func.pg_get_serial_sequence(table.name, "id")
                last = sa.select(sa.func.max(table.c.id)).scalar_subquery()
                connection.execute(sa.select(sa.func.setval(counter, last)))
        engine.dispose()
    if _read(table, target) != sent:
        raise _differs(f"the table {table.name}")
    checksum = sha256(repr(sorted(sent.items(), key=repr)).encode()).hexdigest()
    return Copied(table.name, len(sent), len(fresh), checksum)


def _copy_files(source: TextFiles, target: TextFiles) -> Copied:
    """Copy saved settings, and how collections are open from elsewhere."""
    names = [f"{config.SAVED}/{name}" for name in source.names(config.SAVED)]
    sent = {name: text for name in (*names, foreign.FILE) if (text := source.read(name))}
    fresh = {name: text for name, text in sent.items() if target.read(name) != text}
    for name, text in fresh.items():
        if target.read(name) is not None:
            raise InputError(f"The target has another file {name}.", remedy=OTHER)
        target.write(name, text)
    checksum = sha256(repr(sorted(sent.items())).encode()).hexdigest()
    return Copied("files", len(sent), len(fresh), checksum)


def _check_only_ours(table: sa.Table, source: Workspace, target: Workspace) -> None:
    """Raise InputError if the target holds rows that the source does not have."""
    sent = _read(table, source)
    if any(sent.get(key) != row for key, row in _read(table, target).items()):
        raise InputError(f"The target has other rows in its table {table.name}.", remedy=OTHER)


def _read(table: sa.Table, workspace: Workspace) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """All rows of a table by their keys, with times in UTC."""
    engine = connect(workspace.database_url, "workspace")
    try:
        with engine.connect() as connection:
            found = connection.execute(sa.select(table)).all()
    finally:
        engine.dispose()
    keys = [table.columns.keys().index(column.name) for column in table.primary_key.columns]
    rows = (tuple(in_utc(v) if isinstance(v, datetime) else v for v in row) for row in found)
    return {tuple(row[at] for at in keys): row for row in rows}


def _differs(what: str) -> StoreError:
    return StoreError(
        f"What arrived of {what} is not what was sent.",
        remedy="Was it changed meanwhile? Stop what uses either workspace, and copy again.",
    )
