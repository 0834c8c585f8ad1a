"""What the workspace's database holds about a collection: rule edits, labels and so on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ragfilter.basics.extras import extra
from ragfilter.errors import StoreError

with extra("chroma"):
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

COLUMN = "collection"


def rename(url: str, old: str, new: str) -> None:
    """Move everything that belongs to `old` to `new`. Raises StoreError."""
    with _tables(url) as (connection, tables):
        for table in tables:
            mine = table.c[COLUMN] == old
            connection.execute(table.update().where(mine).values({COLUMN: new}))


def forget(url: str, name: str) -> None:
    """Delete everything that belongs to the collection `name`. Raises StoreError."""
    with _tables(url) as (connection, tables):
        for table in tables:
            connection.execute(table.delete().where(table.c[COLUMN] == name))


@contextmanager
def _tables(url: str) -> Iterator[tuple[sa.Connection, list[sa.Table]]]:
    """A transaction, with all tables that name a collection."""
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            metadata = sa.MetaData()
            metadata.reflect(connection)
            yield connection, [t for t in metadata.tables.values() if COLUMN in t.c]
    except SQLAlchemyError as error:
        # Without the error's own message, which may contain a password.
        raise StoreError(
            f"The workspace's database failed ({type(error).__name__}).",
            remedy="Check that it is a writable file and that its disk is not full.",
        ) from None
    finally:
        engine.dispose()
