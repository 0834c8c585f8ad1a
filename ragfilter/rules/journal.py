"""The journal of rule edits: who changed which chunk's rule, when, from what, to what.

Source: docs/design.md#journal.

An edit is entered as ``pending`` before the store is touched, and ends as ``done`` or
``rolled_back``. Undo and redo are entries of their own that point to the edit they are about; once
they are done, that edit is ``undone`` or ``done`` again. Nothing is ever deleted.

A chunk has at most one pending edit: the database itself holds this (a unique index), so it is also
true between processes that share a journal. SQLite and PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from ragfilter.errors import ConflictError, InputError, StoreError
from ragfilter.extras import extra
from ragfilter.text.urls import shown

with extra("chroma"):
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError, IntegrityError, SQLAlchemyError
    from sqlalchemy.schema import CreateIndex, CreateTable

State = Literal["pending", "done", "undone", "rolled_back"]
Kind = Literal["edit", "undo", "redo"]

BUSY_S = 10.0
_DAMAGED = re.compile("not a database|malformed|no such column|has no column")

_metadata = sa.MetaData()
_edits = sa.Table(
    "rule_edits",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("collection", sa.Text, nullable=False),
    sa.Column("chunk_id", sa.Text, nullable=False),
    sa.Column("before", sa.Text),
    sa.Column("after", sa.Text),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("of", sa.Integer),
    sa.Column("state", sa.Text, nullable=False),
    sqlite_autoincrement=True,
)
_PENDING = _edits.c.state == "pending"
_INDEXES = (
    sa.Index(
        "rule_edits_one_pending",
        _edits.c.collection,
        _edits.c.chunk_id,
        unique=True,
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    ),
    sa.Index("rule_edits_of_chunk", _edits.c.collection, _edits.c.chunk_id, _edits.c.id),
    sa.Index("rule_edits_of_edit", _edits.c.of),
)


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry. `before` and `after` are rule texts as stored, None for no rule; `at` is in UTC;
    `of` is the id of the edit that an undo or redo is about."""

    id: int
    at: datetime
    who: str
    collection: str
    chunk_id: str
    before: str | None
    after: str | None
    kind: Kind
    of: int | None
    state: State


class Journal:
    """The journal in the database at `url`. Safe in threads. Every method raises StoreError where
    the database fails."""

    def __init__(self, url: str) -> None:
        """Open the journal, making its table where there is none. Raises InputError: bad URL."""
        self._engine = _open(url)
        self._let_go: set[int] = set()
        try:
            self._prepare()
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections; the journal must not be used afterwards."""
        self._engine.dispose()

    def begin(
        self,
        *,
        who: str,
        collection: str,
        chunk_id: str,
        before: str | None,
        after: str | None,
        kind: Kind = "edit",
        of: int | None = None,
    ) -> Edit:
        """Enter a pending edit. Raises ConflictError where the chunk has one already."""
        row = {
            "at": datetime.now(UTC),
            "who": who,
            "collection": collection,
            "chunk_id": chunk_id,
            "before": before,
            "after": after,
            "kind": kind,
            "of": of,
            "state": "pending",
        }
        try:
            with self._writing() as connection:
                return _edit(
                    connection.execute(_edits.insert().values(row).returning(_edits)).one()
                )
        except IntegrityError:
            raise ConflictError(
                f"Another edit of {chunk_id} is under way.",
                remedy="Wait a moment, look at the rule again and repeat your change.",
            ) from None

    def finish(self, edit_id: int) -> Edit:
        """Mark a pending edit done, and the edit that it undoes or redoes undone or done. An edit
        that is not pending stays as it is. Raises KeyError: unknown id."""
        with self._writing() as connection:
            edit = _close(connection, edit_id, "done")
            if edit.of is not None and edit.state == "done":
                state = "undone" if edit.kind == "undo" else "done"
                connection.execute(
                    _edits.update().where(_edits.c.id == edit.of).values(state=state)
                )
            return edit

    def roll_back(self, edit_id: int) -> Edit:
        """Mark a pending edit rolled back. An edit that is not pending stays as it is. Raises
        KeyError: unknown id."""
        with self._writing() as connection:
            return _close(connection, edit_id, "rolled_back")

    def let_go(self, edit_id: int) -> None:
        """Remember, as long as this journal is open, that nobody is at work on a pending edit."""
        self._let_go.add(edit_id)

    def was_let_go(self, edit_id: int) -> bool:
        return edit_id in self._let_go

    def unfinished(
        self, collection: str | None = None, chunk_id: str | None = None
    ) -> tuple[Edit, ...]:
        """The pending edits, oldest first."""
        query = _scope(collection, chunk_id).where(_PENDING).order_by(_edits.c.id)
        return self._read(query)

    def history(
        self, collection: str, chunk_id: str | None = None, *, limit: int = 100
    ) -> tuple[Edit, ...]:
        """The entries of a collection, or of one of its chunks, newest first."""
        query = _scope(collection, chunk_id).order_by(_edits.c.id.desc()).limit(limit)
        return self._read(query)

    def undoable(self, collection: str, chunk_id: str | None = None) -> Edit | None:
        """The edit that undo would take back: the last one that is done."""
        query = _scope(collection, chunk_id).where(
            _edits.c.kind == "edit", _edits.c.state == "done"
        )
        return self._first(query)

    def redoable(self, collection: str, chunk_id: str | None = None) -> Edit | None:
        """The edit that redo would bring back: the one that was undone last, unless something was
        saved since."""
        undo = _edits.alias("undo")
        saved = _edits.alias("saved")
        saved_since = sa.select(saved.c.id).where(
            saved.c.id > undo.c.id,
            saved.c.collection == collection,
            saved.c.kind == "edit",
            saved.c.state.in_(("done", "undone")),
        )
        if chunk_id is not None:
            saved_since = saved_since.where(saved.c.chunk_id == chunk_id)
        query = (
            _scope(collection, chunk_id)
            .join(undo, undo.c.of == _edits.c.id)
            .where(
                _edits.c.state == "undone",
                undo.c.kind == "undo",
                ~sa.exists(saved_since),
            )
            .order_by(undo.c.id.desc())
        )
        return self._first(query)

    def _read(self, query: sa.Select[Any]) -> tuple[Edit, ...]:
        with _guard(self._engine), self._engine.connect() as connection:
            return tuple(_edit(row) for row in connection.execute(query))

    def _first(self, query: sa.Select[Any]) -> Edit | None:
        found = self._read(query.order_by(_edits.c.id.desc()).limit(1))
        return found[0] if found else None

    def _prepare(self) -> None:
        if self._engine.dialect.name == "sqlite":
            # Readers then never wait for a writer. The file remembers it.
            with _guard(self._engine), self._engine.connect() as connection:
                connection.execute(sa.text("PRAGMA journal_mode=WAL"))
        with self._writing() as connection:
            connection.execute(CreateTable(_edits, if_not_exists=True))
            for index in _INDEXES:
                connection.execute(CreateIndex(index, if_not_exists=True))

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with _guard(self._engine), self._engine.begin() as connection:
            yield connection


def _open(url: str) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        sqlite = parsed.get_backend_name() == "sqlite"
        if not sqlite and parsed.get_backend_name() != "postgresql":
            raise InputError(
                f"The journal cannot be kept in {parsed.get_backend_name()}.",
                remedy="Use sqlite:///path/to/file or postgresql://host/database.",
            )
        return sa.create_engine(
            parsed,
            connect_args={"timeout": BUSY_S} if sqlite else {},
            pool_pre_ping=not sqlite,
        )
    except (ArgumentError, ModuleNotFoundError, ValueError) as error:
        # What cannot be parsed is not repeated: it may be a password.
        why = str(error) if isinstance(error, ModuleNotFoundError) else "it cannot be read"
        raise InputError(
            f"The journal's database URL cannot be used ({why}).",
            remedy="Write sqlite:///path/to/file or postgresql://host/database, and install the "
            "database's driver.",
        ) from None


@contextmanager
def _guard(engine: sa.Engine) -> Iterator[None]:
    try:
        yield
    except IntegrityError:
        raise
    except SQLAlchemyError as error:
        what = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
        where = shown(engine.url.render_as_string(hide_password=False))
        # A driver may repeat what it was given.
        for secret in (engine.url.password, *map(str, engine.url.query.values())):
            what = what.replace(secret, "…") if secret else what
        remedy = f"Check that {where} exists, has room and is writable."
        if _DAMAGED.search(what):
            remedy = (
                f"Restore {where} from a backup, or move it away: the rules in the store stay, "
                "but earlier edits can then not be undone, and a rebuild loses them."
            )
        raise StoreError(f"The journal of edits failed ({what}).", remedy=remedy) from error


def _scope(collection: str | None, chunk_id: str | None) -> sa.Select[Any]:
    query = sa.select(_edits)
    if collection is not None:
        query = query.where(_edits.c.collection == collection)
    if chunk_id is not None:
        query = query.where(_edits.c.chunk_id == chunk_id)
    return query


def _close(connection: sa.Connection, edit_id: int, state: State) -> Edit:
    mine = _edits.c.id == edit_id
    closed = _edits.update().where(mine, _PENDING).values(state=state).returning(_edits)
    row = connection.execute(closed).one_or_none()
    if row is None:
        row = connection.execute(sa.select(_edits).where(mine)).one_or_none()
    if row is None:
        raise KeyError(edit_id)
    return _edit(row)


def _edit(row: sa.Row[Any]) -> Edit:
    values = cast(dict[str, Any], dict(row._mapping))
    # SQLite keeps no time zone; what is written is UTC.
    at = values.pop("at")
    return Edit(at=at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC), **values)
