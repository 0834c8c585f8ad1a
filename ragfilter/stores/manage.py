"""Export a collection, rename or delete it with everything that belongs to it (copy, rule edits,
labels), and copy a whole workspace: a folder to PostgreSQL, or back. Foreign collections are never
deleted or renamed, since others may depend on them.

An export is JSON lines that can be indexed again exactly, with the edited rules
(docs/design.md#formats). It leaves out hidden chunks, and references to hidden or missing chunks.

Copying a workspace skips what is already there and identical, so that an interrupted copy can
continue, and never replaces anything that differs. At the end, it compares counts and checksums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ragfilter.basics.database import connect, in_utc
from ragfilter.basics.files import TextFiles
from ragfilter.errors import CollectionMissing, InputError, StoreError, extra
from ragfilter.ingest.records import to_line
from ragfilter.model import UNRESTRICTED, User
from ragfilter.protocols import Progress
from ragfilter.rules import draft_store, journal
from ragfilter.settings import config
from ragfilter.stores import labels, opening, preferences, runs
from ragfilter.stores.base import check_name, pages
from ragfilter.stores.copies import Copies, StoredRow, content_fingerprint
from ragfilter.stores.index import counter, locked, rebuild
from ragfilter.stores.workspace import Workspace

with extra("chroma"):
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

if TYPE_CHECKING:
    from ragfilter.stores.workspace import Store, StoredCollection

BOOKS = (journal.Journal, draft_store.DraftStore, labels.LabelBook, preferences.Preferences, runs.Runs)
TABLES = tuple(table for book in BOOKS for table in book.tables)
PAGE = 1000
COLUMN = "collection"
"""The column, in every table of the workspace's database, with the collection of a row."""


def export(workspace: Workspace, collection: StoredCollection, user: User = UNRESTRICTED) -> Iterator[str]:
    """Yield one line per chunk that `user` can see. Raises StoreError, also if the collection is
    incomplete, because the export could not say that chunks are missing."""
    if collection.incomplete:
        raise StoreError(f"Nothing was exported. {collection.incomplete}")
    known = collection.entries()
    clearances = workspace.contents.as_given(collection.name)
    ids = [i for i, chunk in known.items() if user.sees(chunk)]
    shown = set(ids)
    for page in pages(ids, PAGE):
        for i, chunk in collection.chunks(page).items():
            if not user.unrestricted:
                chunk = replace(chunk, refs=tuple(filter(shown.__contains__, chunk.refs)))
            yield to_line(chunk, clearances.get(i))


def rename(workspace: Workspace, old: str, new: str) -> None:
    """Rename the collection `old` to `new`.

    Raises InputError for an invalid name, CollectionMissing, WorkspaceLocked if one of them is
    being indexed, and StoreError. After an error, nothing is renamed.
    """
    check_name(new)
    store = workspace.store()
    with locked(workspace, old), locked(workspace, new):
        _must_be_ours(store, old)
        # A foreign collection of that name would hide it.
        own = {info.name for info in store.collections()}
        if new in own | opening.openings(workspace.files).keys():
            raise InputError(f"There is a collection {new!r} already.", remedy="Use another name.")
        contents = workspace.contents
        if not isinstance(contents, Copies):
            contents.rename(old, new)
            rename_rows(workspace.database_url, old, new)
            return
        before, after = contents.path(old), contents.path(new)
        # Link the file under both names first, so that the collection always has its copy.
        after.unlink(missing_ok=True)
        try:
            if before.exists():
                os.link(before, after)
        except OSError as error:
            raise StoreError(
                f"The copy {before} cannot be renamed: {error.strerror}.",
                remedy="Check the permissions of its folder, and that its file system supports hard links.",
            ) from None
        with ExitStack() as undo:
            undo.callback(after.unlink, missing_ok=True)
            rename_rows(workspace.database_url, old, new)
            undo.callback(rename_rows, workspace.database_url, new, old)
            store.rename(old, new)
            undo.pop_all()
        contents.delete(old)


def delete(workspace: Workspace, name: str) -> None:
    """Delete the collection `name` and everything that belongs to it.

    Raises CollectionMissing, WorkspaceLocked if it is being indexed, and StoreError.
    """
    store = workspace.store()
    with locked(workspace, name):
        _must_be_ours(store, name)
        store.delete(name)
        workspace.contents.delete(name)
        delete_rows(workspace.database_url, name)
    with suppress(OSError):
        (workspace.copies_dir / f".{name}.lock").unlink(missing_ok=True)


def _must_be_ours(store: Store, name: str) -> None:
    if not store.collection(name).ours:
        raise StoreError(
            f"Collection {name!r} was not made by ragfilter, so it is not changed.",
            remedy="Use the program that made it.",
        )


@contextmanager
def _transaction(url: str) -> Iterator[sa.Connection]:
    """A transaction in the workspace's database. Raises StoreError."""
    engine = connect(url, "workspace")
    try:
        with engine.begin() as connection:
            yield connection
    except SQLAlchemyError as error:
        # Leave out the error's own message, which may contain a password.
        raise StoreError(
            f"The workspace's database failed ({type(error).__name__}).",
            remedy="Check that it can be reached and written, and that its disk is not full.",
        ) from None
    finally:
        engine.dispose()


def _tables(connection: sa.Connection) -> list[sa.Table]:
    """The existing tables with a column for the collection."""
    there = sa.inspect(connection).get_table_names()
    return [table for table in TABLES if table.name in there and COLUMN in table.c]


def rename_rows(url: str, old: str, new: str) -> None:
    """Move all rows that belong to `old` to `new`. Raises StoreError."""
    with _transaction(url) as connection:
        for table in _tables(connection):
            mine = table.c[COLUMN] == old
            connection.execute(table.update().where(mine).values({COLUMN: new}))


def delete_rows(url: str, name: str) -> None:
    """Delete all rows that belong to the collection `name`. Raises StoreError."""
    with _transaction(url) as connection:
        for table in _tables(connection):
            connection.execute(table.delete().where(table.c[COLUMN] == name))


OTHER = "Name a workspace that is empty, or that this copy was begun in."


@dataclass(frozen=True, slots=True)
class Copied:
    """The size of a collection or table in both places. `new` is the number copied just now."""

    name: str
    count: int
    new: int
    checksum: str


def copy_workspace(
    source: Workspace, target: Workspace, progress: Callable[[str], Progress | None]
) -> tuple[Copied, ...]:
    """Copy every collection that ragfilter made, with its rules, labels, votes, runs and journal,
    and the saved settings.

    `progress` returns the progress callback for a collection. Raises InputError if the target has
    something else under the same name, and StoreError if the copy differs from the original.
    """
    if source.database_url == target.database_url:
        raise InputError("Both are the same workspace.", remedy="Name two different ones.")
    if source.server is not None and source.server == target.server:
        raise InputError(
            "Both would keep their vectors in the same place.",
            remedy="Copy to or from a database: the server's URL applies only to folders.",
        )
    for workspace in (source, target):
        for book in BOOKS:
            book(workspace.database_url).close()
    for table in TABLES:
        sent = _read(table, source)
        if any(sent.get(key) != row for key, row in _read(table, target).items()):
            raise InputError(f"The target has other rows in its table {table.name}.", remedy=OTHER)
    names = [info.name for info in source.store().collections() if info.ours]
    done = [_copy_collection(name, source, target, progress(name)) for name in names]
    tables = (_copy_table(table, source, target) for table in TABLES)
    return (*done, *tables, _copy_files(source.files, target.files))


def _copy_collection(name: str, source: Workspace, target: Workspace, progress: Progress | None) -> Copied:
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
        contents = target.contents
        if not isinstance(contents, Copies):
            prints = {row.chunk.id: row.fingerprint for row in rows}
            contents.put(
                name,
                rows,
                embedder=model,
                content=content_fingerprint(model, prints),
                progress=counter(progress, len(rows)),
            )
    if isinstance(contents, Copies):
        contents.replace(name, rows, embedder=model)
        rebuild(name, workspace=target, progress=progress)
    if _checksum(name, target) != sent:
        raise _differs(f"the collection {name}")
    return Copied(name, count, count, sent)


def _rows(name: str, workspace: Workspace, ordered: Callable[[Iterable[str]], list[str]] = list) -> Iterator[StoredRow]:
    """The stored rows of a collection, with the current rules. Raises CollectionMissing."""
    collection = workspace.store().collection(name)
    contents = workspace.contents
    summary, clearances = contents.summary(name), contents.as_given(name)
    prints = summary.fingerprints if summary else {}
    for ids in pages(ordered(collection.entries()), PAGE):
        vectors = collection.vectors(ids)
        for vector, (i, chunk) in zip(vectors, collection.chunks(ids).items(), strict=True):
            yield StoredRow(chunk, vector, clearances.get(i), prints.get(i, ""))


def _checksum(name: str, workspace: Workspace) -> str:
    """The sha256 of all chunks and vectors of a collection. Raises CollectionMissing."""
    digest = sha256()
    for row in _rows(name, workspace, sorted):
        bare = replace(row.chunk, metadata={})
        fields = (bare.text, bare.rule, sorted(row.chunk.metadata.items()))
        digest.update(repr((bare, *fields)).encode())
        digest.update(row.vector.tobytes())
    return digest.hexdigest()


def _copy_table(table: sa.Table, source: Workspace, target: Workspace) -> Copied:
    sent, there = _read(table, source), _read(table, target)
    fresh = [row for key, row in sent.items() if key not in there]
    if fresh:
        columns = table.columns.keys()
        with _transaction(target.database_url) as connection:
            rows = [dict(zip(columns, row, strict=True)) for row in fresh]
            connection.execute(table.insert(), rows)
            if connection.dialect.name == "postgresql" and "id" in columns:
                # The sequence does not count ids that were inserted explicitly.
                counter = sa.func.pg_get_serial_sequence(table.name, "id")
                last = sa.select(sa.func.max(table.c.id)).scalar_subquery()
                connection.execute(sa.select(sa.func.setval(counter, last)))
    if _read(table, target) != sent:
        raise _differs(f"the table {table.name}")
    checksum = sha256(repr(sorted(sent.items(), key=repr)).encode()).hexdigest()
    return Copied(table.name, len(sent), len(fresh), checksum)


def _copy_files(source: TextFiles, target: TextFiles) -> Copied:
    """Copy saved settings, and the list of foreign collections."""
    names = [f"{config.SAVED}/{name}" for name in source.names(config.SAVED)]
    sent = {name: text for name in (*names, opening.FILE) if (text := source.read(name))}
    fresh = {name: text for name, text in sent.items() if target.read(name) != text}
    for name, text in fresh.items():
        if target.read(name) is not None:
            raise InputError(f"The target has another file {name}.", remedy=OTHER)
        target.write(name, text)
    checksum = sha256(repr(sorted(sent.items())).encode()).hexdigest()
    return Copied("files", len(sent), len(fresh), checksum)


def _read(table: sa.Table, workspace: Workspace) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """All rows of a table by their keys, with times in UTC."""
    with _transaction(workspace.database_url) as connection:
        stored = connection.execute(sa.select(table)).all()
    keys = [table.columns.keys().index(column.name) for column in table.primary_key.columns]
    rows = (tuple(in_utc(v) if isinstance(v, datetime) else v for v in row) for row in stored)
    return {tuple(row[at] for at in keys): row for row in rows}


def _differs(what: str) -> StoreError:
    return StoreError(
        f"The copy of {what} differs from the original.",
        remedy="It may have changed. Stop whatever uses either workspace, and copy again.",
    )
