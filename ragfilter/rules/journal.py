"""The journal of rule edits: who changed which chunk's rule, when, from what, to what.

Source: docs/design.md#journal.

An edit is entered as ``pending`` before the store is touched, and ends as ``done`` or
``rolled_back``. Undo and redo are entries of their own that point to the edit they are about; once
they are done, that edit is ``undone`` or ``done`` again. Nothing is ever deleted.

Edits that were made together share a `batch`: they begin and end in one transaction, so that a step
over many chunks is whole or not at all. `rule_exports` remembers when rules were exported.

A chunk has at most one pending edit: the database itself holds this (a unique index), so it is also
true between processes that share a journal. SQLite and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast
from uuid import uuid4

from ragfilter import database
from ragfilter.errors import ConflictError, StoreError
from ragfilter.extras import extra

with extra("chroma"):
    import sqlalchemy as sa
    from sqlalchemy.exc import IntegrityError

State = Literal["pending", "done", "undone", "rolled_back"]
Kind = Literal["edit", "undo", "redo"]

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
    sa.Column("batch", sa.Text),
    sqlite_autoincrement=True,
)
_exports = sa.Table(
    "rule_exports",
    _metadata,
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("edit", sa.Integer, nullable=False),
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
    sa.Index("rule_edits_of_batch", _edits.c.batch),
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
    batch: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A change to be entered: a chunk's rule before and after, and the edit it undoes or redoes."""

    chunk_id: str
    before: str | None
    after: str | None
    of: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What was changed at once: one edit, or all of a batch, of which `edit` is the first. `done`
    counts those in force."""

    edit: Edit
    size: int
    done: int


class Journal:
    """The journal in the database at `url`. Safe in threads. Every method raises StoreError where
    the database fails."""

    def __init__(self, url: str) -> None:
        """Open the journal, making its table where there is none. Raises InputError: bad URL."""
        self._engine = database.connect(url, "journal")
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
        row = _row(Entry(chunk_id, before, after, of), who, collection, kind, None)
        try:
            with self._writing() as connection:
                return _edit(
                    connection.execute(_edits.insert().values(row).returning(_edits)).one()
                )
        except IntegrityError:
            raise _under_way(chunk_id) from None

    def begin_all(
        self, entries: Sequence[Entry], *, who: str, collection: str, kind: Kind = "edit"
    ) -> tuple[Edit, ...]:
        """Enter pending edits of several chunks as one batch, all or none. Raises ConflictError
        where one of the chunks has a pending edit already."""
        batch = uuid4().hex
        rows = [_row(entry, who, collection, kind, batch) for entry in entries]
        try:
            with self._writing() as connection:
                connection.execute(_edits.insert(), rows)
        except IntegrityError:
            raise _under_way("one of these chunks") from None
        return self.batch(batch)

    def finish_all(self, batch: str) -> None:
        """Mark the pending edits of a batch done, and those that they undo or redo undone or
        done."""
        mine = (_edits.c.batch == batch, _PENDING)
        with self._writing() as connection:
            rows = connection.execute(sa.select(_edits.c.kind).where(*mine).limit(1)).all()
            if rows:
                inner = _edits.alias("inner")
                about = sa.select(inner.c.of).where(
                    inner.c.batch == batch, inner.c.state == "pending", inner.c.of.is_not(None)
                )
                state = "undone" if rows[0].kind == "undo" else "done"
                connection.execute(
                    _edits.update().where(_edits.c.id.in_(about)).values(state=state)
                )
            connection.execute(_edits.update().where(*mine).values(state="done"))

    def roll_back_all(self, batch: str) -> None:
        """Mark the pending edits of a batch rolled back."""
        with self._writing() as connection:
            pending = _edits.update().where(_edits.c.batch == batch, _PENDING)
            connection.execute(pending.values(state="rolled_back"))

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

    def batch(self, batch: str) -> tuple[Edit, ...]:
        """The edits of a batch, in the order in which they were entered."""
        return self._read(sa.select(_edits).where(_edits.c.batch == batch).order_by(_edits.c.id))

    def step(self, edit_id: int) -> tuple[Edit, ...]:
        """The edit with this id, and those made together with it. Raises KeyError."""
        found = self._read(sa.select(_edits).where(_edits.c.id == edit_id))
        if not found:
            raise KeyError(edit_id)
        return found if found[0].batch is None else self.batch(found[0].batch)

    def steps(self, collection: str, *, limit: int = 100, offset: int = 0) -> tuple[Step, ...]:
        """What was changed at once in a collection, newest first."""
        group = sa.func.coalesce(_edits.c.batch, sa.cast(_edits.c.id, sa.Text))
        done = sa.func.sum(sa.case((_edits.c.state == "done", 1), else_=0))
        counted = (
            sa.select(
                sa.func.min(_edits.c.id).label("first"),
                sa.func.count().label("size"),
                done.label("done"),
            )
            .where(_edits.c.collection == collection)
            .group_by(group)
            .order_by(sa.desc("first"))
            .limit(limit)
            .offset(offset)
            .subquery()
        )
        query = (
            sa.select(_edits, counted.c.size, counted.c.done)
            .join(counted, counted.c.first == _edits.c.id)
            .order_by(_edits.c.id.desc())
        )
        with _guard(self._engine), self._engine.connect() as connection:
            return tuple(_step(row) for row in connection.execute(query))

    def mark_exported(self, collection: str) -> None:
        """Remember that the collection's rules were exported as they are now."""
        with self._writing() as connection:
            last = connection.scalar(
                sa.select(sa.func.max(_edits.c.id)).where(_edits.c.collection == collection)
            )
            connection.execute(_exports.delete().where(_exports.c.collection == collection))
            row = {"collection": collection, "at": datetime.now(UTC), "edit": last or 0}
            connection.execute(_exports.insert().values(row))

    def edited_since_export(self, collection: str) -> dict[str, str | None]:
        """The rules, as they were at the last export, of the chunks edited since; none where
        nothing was exported yet."""
        query = (
            _scope(collection, None)
            .join(_exports, _exports.c.collection == _edits.c.collection)
            .where(_edits.c.id > _exports.c.edit, _edits.c.state.in_(("done", "undone")))
            .order_by(_edits.c.id)
        )
        rules: dict[str, str | None] = {}
        for edit in self._read(query):
            rules.setdefault(edit.chunk_id, edit.before)
        return rules

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
        with _guard(self._engine):
            database.prepare(self._engine, [_edits, _exports], ())
            columns = {each["name"] for each in sa.inspect(self._engine).get_columns(_edits.name)}
            if "batch" not in columns:
                # A journal that was begun before edits had batches.
                with self._engine.begin() as connection:
                    connection.execute(sa.text(f"ALTER TABLE {_edits.name} ADD COLUMN batch TEXT"))
            database.prepare(self._engine, (), _INDEXES)

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with _guard(self._engine), self._engine.begin() as connection:
            yield connection


def _guard(engine: sa.Engine) -> AbstractContextManager[None]:
    return database.guard(
        engine,
        "The journal of edits",
        lost="the rules in the store stay, but earlier edits can then not be undone, and a rebuild "
        "loses them.",
    )


def _row(
    entry: Entry, who: str, collection: str, kind: Kind, batch: str | None
) -> dict[str, object]:
    return {
        "at": datetime.now(UTC),
        "who": who,
        "collection": collection,
        "chunk_id": entry.chunk_id,
        "before": entry.before,
        "after": entry.after,
        "kind": kind,
        "of": entry.of,
        "state": "pending",
        "batch": batch,
    }


def _under_way(what: str) -> ConflictError:
    return ConflictError(
        f"Another edit of {what} is under way.",
        remedy="Wait a moment, look at the rule again and repeat your change.",
    )


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


def _step(row: sa.Row[Any]) -> Step:
    values = cast(dict[str, Any], dict(row._mapping))
    size, done = values.pop("size"), values.pop("done")
    return Step(_of_values(values), int(size), int(done))


def _edit(row: sa.Row[Any]) -> Edit:
    return _of_values(cast(dict[str, Any], dict(row._mapping)))


def _of_values(values: dict[str, Any]) -> Edit:
    return Edit(at=database.in_utc(values.pop("at")), **values)
