"""Export a collection, and rename or delete it with everything that belongs to it: copy, rule
edits, labels. Foreign collections are never deleted or renamed, since others may depend on them.

An export is JSON lines that index back exactly, with the edited rules (docs/design.md#formats).
Clearance decides what is in it: a hidden chunk is left out, and so is each reference to one, or to
a chunk that does not exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ragfilter.basics.database import connect
from ragfilter.basics.extras import extra
from ragfilter.errors import InputError, StoreError
from ragfilter.ingest.records import to_line
from ragfilter.model import UNRESTRICTED, User
from ragfilter.rules import draft_store, journal
from ragfilter.stores import copies, foreign, labels, preferences, runs
from ragfilter.stores.base import check_name, pages
from ragfilter.stores.index import only_one
from ragfilter.stores.workspace import Workspace

with extra("chroma"):
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

if TYPE_CHECKING:
    from ragfilter.stores.workspace import Store, StoredCollection

BOOKS = (
    journal.Journal, draft_store.DraftStore, labels.LabelBook, preferences.Preferences, runs.Runs
)  # fmt: skip
TABLES = frozenset(table.name for book in BOOKS for table in book.tables)
PAGE = 1000
COLUMN = "collection"
"""The column of every table in the workspace's database that says what a row belongs to."""


def export(
    workspace: Workspace, collection: StoredCollection, user: User = UNRESTRICTED
) -> Iterator[str]:
    """Yield one line per chunk that `user` may see. Raises StoreError, also if the collection is
    incomplete, because the lines could not say that chunks are missing."""
    if collection.incomplete:
        raise StoreError(f"Nothing was exported. {collection.incomplete}")
    known = collection.entries()
    given = as_given(workspace, collection.name)
    ids = [i for i, chunk in known.items() if user.sees(chunk)]
    shown = set(ids)
    for page in pages(ids, PAGE):
        for i, chunk in collection.chunks(page).items():
            refs = (
                chunk.refs if user.unrestricted else tuple(filter(shown.__contains__, chunk.refs))
            )
            yield to_line(replace(chunk, refs=refs), given.get(i))


def as_given(workspace: Workspace, name: str) -> dict[str, str | None]:
    """What the source of a collection said instead of a readable clearance, by chunk id."""
    if (database := workspace.pg()) is not None:
        return database.as_given(name)
    rows = copies.read_copy(workspace.copy_path(name))
    return {row.chunk.id: row.clearance_as_given for row in rows}


def rename(workspace: Workspace, old: str, new: str) -> None:
    """Rename the collection `old` to `new`.

    Raises InputError for an invalid name, CollectionMissing, WorkspaceLocked if one of them is
    being indexed, and StoreError. Nothing is renamed then.
    """
    check_name(new)
    store = workspace.store()
    with locked(workspace, old), locked(workspace, new):
        _must_be_ours(store, old)
        # One that is open from elsewhere would hide it.
        own = {info.name for info in store.collections()}
        if new in own | foreign.openings(workspace.files).keys():
            raise InputError(f"There is a collection {new!r} already.", remedy="Use another name.")
        if (database := workspace.pg()) is not None:
            database.rename(old, new)
            rename_rows(workspace.database_url, old, new)
            return
        before, after = workspace.copy_path(old), workspace.copy_path(new)
        # A second name of the same file, so that the collection always has its copy.
        after.unlink(missing_ok=True)
        if before.exists():
            try:
                os.link(before, after)
            except OSError as error:
                raise StoreError(
                    f"The copy {before} cannot be renamed: {error.strerror}.",
                    remedy="Check the permissions of its folder, and that its file system supports "
                    "hard links.",
                ) from None
        try:
            rename_rows(workspace.database_url, old, new)
            try:
                store.rename(old, new)
            except StoreError:
                rename_rows(workspace.database_url, new, old)
                raise
        except StoreError:
            after.unlink(missing_ok=True)
            raise
        before.unlink(missing_ok=True)
        copies.remove_parts(workspace.copies_dir / f"{old}.parts")


def delete(workspace: Workspace, name: str) -> None:
    """Delete the collection `name` completely.

    Raises CollectionMissing, WorkspaceLocked if it is being indexed, and StoreError.
    """
    store = workspace.store()
    with locked(workspace, name):
        _must_be_ours(store, name)
        store.delete(name)
        workspace.copy_path(name).unlink(missing_ok=True)
        copies.remove_parts(workspace.copies_dir / f"{name}.parts")
        delete_rows(workspace.database_url, name)
    with suppress(OSError):
        (workspace.copies_dir / f".{name}.lock").unlink(missing_ok=True)


def locked(workspace: Workspace, name: str) -> AbstractContextManager[None]:
    """Lock a collection against indexing and other changes. Raises WorkspaceLocked."""
    database = workspace.pg()
    return only_one(workspace, name) if database is None else database.only_one(name)


def _must_be_ours(store: Store, name: str) -> None:
    if not store.collection(name).info().ours:
        raise StoreError(
            f"Collection {name!r} was not made by ragfilter and stays as it is.",
            remedy="Use the program that made it.",
        )


def rename_rows(url: str, old: str, new: str) -> None:
    """Move everything that belongs to `old` to `new`. Raises StoreError."""
    with _tables(url) as (connection, tables):
        for table in tables:
            mine = table.c[COLUMN] == old
            connection.execute(table.update().where(mine).values({COLUMN: new}))


def delete_rows(url: str, name: str) -> None:
    """Delete everything that belongs to the collection `name`. Raises StoreError."""
    with _tables(url) as (connection, tables):
        for table in tables:
            connection.execute(table.delete().where(table.c[COLUMN] == name))


@contextmanager
def _tables(url: str) -> Iterator[tuple[sa.Connection, list[sa.Table]]]:
    """A transaction, with all tables that name a collection."""
    engine = connect(url, "workspace")
    try:
        with engine.begin() as connection:
            metadata = sa.MetaData()
            there = TABLES.intersection(sa.inspect(connection).get_table_names())
            metadata.reflect(connection, only=sorted(there))
            yield connection, [t for t in metadata.tables.values() if COLUMN in t.c]
    except SQLAlchemyError as error:
        # Without the error's own message, which may contain a password.
        raise StoreError(
            f"The workspace's database failed ({type(error).__name__}).",
            remedy="Check that it can be reached and written, and that its disk is not full.",
        ) from None
    finally:
        engine.dispose()
