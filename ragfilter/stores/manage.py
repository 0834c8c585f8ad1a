"""Export a collection, rename or delete it with everything that belongs to it (copy, rule edits,
labels), and copy a whole workspace: a folder to PostgreSQL, or back. Foreign collections are never
deleted or renamed, since others may depend on them.

An export is JSON lines that can be indexed again exactly, with the edited rules
(docs/design.md#formats). It leaves out hidden chunks, and references to hidden or missing chunks.

Copying a workspace skips what is already there and identical, so that an interrupted copy can continue, and never
replaces anything that differs. At the end, it compares counts and checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ragfilter.basics import database
from ragfilter.basics.files import TextFiles
from ragfilter.errors import CollectionMissing, InputError, StoreError, extra
from ragfilter.ingest.records import to_line
from ragfilter.model import UNRESTRICTED, User
from ragfilter.protocols import Progress
from ragfilter.rules import drafting, journal
from ragfilter.settings import config
from ragfilter.stores import label_book, opening, preferences, run_store
from ragfilter.stores.base import check_name, pages
from ragfilter.stores.caches import UNFINISHED
from ragfilter.stores.copies import Copies, StoredRow, content_fingerprint
from ragfilter.stores.indexer import counter, locked, rebuild
from ragfilter.stores.workspace_files import Workspace

with extra("chroma"):
    import sqlalchemy as sa
    from sqlalchemy.exc import IntegrityError

if TYPE_CHECKING:
    from ragfilter.stores.workspace_files import Store, StoredCollection

BOOKS = (journal.Journal, drafting.DraftStore, label_book.LabelBook, preferences.PreferenceBook, run_store.Runs)
PAGE = 1000


def export(workspace: Workspace, collection: StoredCollection, user: User = UNRESTRICTED) -> Iterator[str]:
    """Yield one line per chunk that `user` can see. Raises StoreError, also if the collection is
    incomplete, because the export could not say that chunks are missing."""
    if collection.incomplete:
        raise StoreError(f"Nothing was exported. {collection.incomplete}")
    known = collection.entries()
    clearances = workspace.contents.summary(collection.name).as_given
    ids = [i for i, chunk in known.items() if user.sees(chunk)]
    visible = set(ids)
    for page in pages(ids, PAGE):
        for i, chunk in collection.chunks(page).items():
            if not user.unrestricted:
                chunk = replace(chunk, refs=tuple(filter(visible.__contains__, chunk.refs)))
            yield to_line(chunk, clearances.get(i))


def rename(workspace: Workspace, old: str, new: str) -> None:
    """Rename the collection `old` to `new`. Raises InputError for an invalid name, CollectionMissing, WorkspaceLocked
    if one of them is being indexed, and StoreError. After an error, nothing is renamed."""
    check_name(new)
    store = workspace.store()
    with locked(workspace, old), locked(workspace, new), closing(EveryTable(workspace.database_url)) as rows:
        _must_be_ours(store, old)
        # A foreign collection of that name would hide it.
        names = {info.name for info in store.collections()}
        if new in names | opening.openings(workspace.files).keys():
            raise InputError(f"There is a collection {new!r} already.", remedy="Use another name.")
        contents = workspace.contents
        with ExitStack() as undo:
            if isinstance(contents, Copies):
                contents.rename(old, new)
                undo.callback(contents.rename, new, old)
            rows.rename(old, new)
            undo.callback(rows.rename, new, old)
            store.rename(old, new)
            undo.pop_all()


def delete(workspace: Workspace, name: str) -> None:
    """Delete the collection `name` and everything that belongs to it. Raises CollectionMissing, WorkspaceLocked if it
    is being indexed, and StoreError."""
    store = workspace.store()
    with locked(workspace, name), closing(EveryTable(workspace.database_url)) as rows:
        _must_be_ours(store, name)
        store.delete(name)
        workspace.contents.delete(name)
        rows.delete(name)
    workspace.vectors.forget(name, f"{UNFINISHED}{name}")
    with suppress(OSError):
        (workspace.copies_dir / f".{name}.lock").unlink(missing_ok=True)


def _must_be_ours(store: Store, name: str) -> None:
    if not store.collection(name).ours:
        message = f"Collection {name!r} was not made by ragfilter, so it is not changed."
        raise StoreError(message, remedy="Use the program that made it.")


class EveryTable(database.Book):
    """What people wrote about the collections of a workspace: the tables of all its books."""

    tables = tuple(table for book in BOOKS for table in book.tables)

    def rename(self, old: str, new: str) -> None:
        """Move all rows that belong to the collection `old` to `new`."""
        try:
            self._write(
                *(table.update().filter_by(collection=old).values(collection=new) for table in self._of_collections)
            )
        except IntegrityError:
            message = f"There are still rows of an earlier collection {new!r}."
            raise StoreError(message, remedy="Use another name.") from None

    def delete(self, name: str) -> None:
        """Delete all rows that belong to the collection `name`."""
        own_rows = (table.delete().filter_by(collection=name) for table in self._of_collections)
        self._write(*own_rows, label_book.ORPHANS, run_store.ORPHANS)

    def rows(self, table: sa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """All rows of a table by their keys, with times in UTC."""
        keys = [table.columns.keys().index(column.name) for column in table.primary_key.columns]
        stored = self._read(sa.select(table))
        rows = (tuple(database.in_utc(v) if isinstance(v, datetime) else v for v in row) for row in stored)
        return {tuple(row[at] for at in keys): row for row in rows}

    def add(self, table: sa.Table, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows with their ids to a table."""
        with self.writing() as connection:
            connection.execute(table.insert(), [dict(zip(table.columns.keys(), row, strict=True)) for row in rows])
            if connection.dialect.name == "postgresql" and "id" in table.c:
                # The sequence does not count ids that were inserted explicitly.
                counter = sa.func.pg_get_serial_sequence(table.name, "id")
                last = sa.select(sa.func.max(table.c.id)).scalar_subquery()
                connection.execute(sa.select(sa.func.setval(counter, last)))

    @property
    def _of_collections(self) -> list[sa.Table]:
        return [table for table in self.tables if "collection" in table.c]


OTHER = "Name a workspace that is empty, or that this copy was begun in."


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """The size of a collection or table in both places. `new` is the number copied just now."""

    name: str
    count: int
    new: int
    checksum: str


def copy_workspace(
    source: Workspace, target: Workspace, progress: Callable[[str], Progress | None]
) -> tuple[CopiedTable, ...]:
    """Copy every collection that ragfilter made, with its rules, labels, votes, runs and journal, and the saved
    settings. `progress` returns the progress callback for a collection. Raises InputError if the target has something
    else under the same name, and StoreError if the copy differs from the original."""
    if source.database_url == target.database_url:
        raise InputError("Both are the same workspace.", remedy="Name two different ones.")
    if source.server is not None and source.server == target.server:
        message = "Both would keep their vectors in the same place."
        raise InputError(message, remedy="Copy to or from a database: the server's URL applies only to folders.")
    with closing(EveryTable(source.database_url)) as sent, closing(EveryTable(target.database_url)) as received:
        for table in EveryTable.tables:
            rows = sent.rows(table)
            if any(rows.get(key) != row for key, row in received.rows(table).items()):
                raise InputError(f"The target has other rows in its table {table.name}.", remedy=OTHER)
        names = [info.name for info in source.store().collections() if info.ours]
        collections = [_copy_collection(name, source, target, progress(name)) for name in names]
        tables = [_copy_table(table, sent, received) for table in EveryTable.tables]
    return (*collections, *tables, _copy_files(source.files, target.files))


def _copy_collection(name: str, source: Workspace, target: Workspace, progress: Progress | None) -> CopiedTable:
    with locked(source, name), locked(target, name):
        source_checksum = _checksum(name, source)
        count = source.store().collection(name).count()
        with suppress(CollectionMissing):
            if _checksum(name, target) != source_checksum:
                raise InputError(f"{name} is another collection in the target.", remedy=OTHER)
            return CopiedTable(name, count, 0, source_checksum)
        rows = list(_rows(name, source))
        model = source.store().collection(name).embedder
        contents = target.contents
        if not isinstance(contents, Copies):
            content = content_fingerprint(model, {row.chunk.id: row.fingerprint for row in rows})
            contents.put(name, rows, embedder=model, content=content, progress=counter(progress, len(rows)))
    if isinstance(contents, Copies):
        contents.replace(name, rows, embedder=model)
        rebuild(name, workspace=target, progress=progress)
    if _checksum(name, target) != source_checksum:
        raise _differs(f"the collection {name}")
    return CopiedTable(name, count, count, source_checksum)


def _rows(name: str, workspace: Workspace, ordered: Callable[[Iterable[str]], list[str]] = list) -> Iterator[StoredRow]:
    """The stored rows of a collection, with the current rules. Raises CollectionMissing."""
    collection = workspace.store().collection(name)
    summary = workspace.contents.summary(name)
    for ids in pages(ordered(collection.entries()), PAGE):
        vectors = collection.vectors(ids)
        for vector, (i, chunk) in zip(vectors, collection.chunks(ids).items(), strict=True):
            yield StoredRow(chunk, vector, summary.as_given.get(i), summary.fingerprints.get(i, ""))


def _checksum(name: str, workspace: Workspace) -> str:
    """The sha256 of all chunks and vectors of a collection. Raises CollectionMissing."""
    digest = sha256()
    for row in _rows(name, workspace, sorted):
        bare = replace(row.chunk, metadata={})
        fields = (bare.text, bare.rule, sorted(row.chunk.metadata.items()))
        digest.update(repr((bare, *fields)).encode())
        digest.update(row.vector.tobytes())
    return digest.hexdigest()


def _copy_table(table: sa.Table, source: EveryTable, target: EveryTable) -> CopiedTable:
    sent, there = source.rows(table), target.rows(table)
    fresh = [row for key, row in sent.items() if key not in there]
    if fresh:
        target.add(table, fresh)
    if target.rows(table) != sent:
        raise _differs(f"the table {table.name}")
    checksum = sha256(repr(sorted(sent.items(), key=repr)).encode()).hexdigest()
    return CopiedTable(table.name, len(sent), len(fresh), checksum)


def _copy_files(source: TextFiles, target: TextFiles) -> CopiedTable:
    """Copy saved settings, and the list of foreign collections."""
    names = [f"{config.SAVED}/{name}" for name in source.names(config.SAVED)]
    sent = {name: text for name in (*names, opening.FILE) if (text := source.read(name))}
    fresh = {name: text for name, text in sent.items() if target.read(name) != text}
    for name, text in fresh.items():
        if target.read(name) is not None:
            raise InputError(f"The target has another file {name}.", remedy=OTHER)
        target.write(name, text)
    checksum = sha256(repr(sorted(sent.items())).encode()).hexdigest()
    return CopiedTable("files", len(sent), len(fresh), checksum)


def _differs(what: str) -> StoreError:
    message = f"The copy of {what} differs from the original."
    return StoreError(message, remedy="It may have changed. Stop whatever uses either workspace, and copy again.")
