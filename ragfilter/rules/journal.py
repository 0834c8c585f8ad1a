"""The journal of rule edits: who changed which chunk's rule, when, from what, to what.

Source: docs/design.md#journal. An edit is entered as ``pending`` before the store is touched, and ends as ``done`` or
``rolled_back``. Undo and redo are entries of their own that refer to another edit; when they are done, that edit
becomes ``undone`` or ``done`` again. Nothing is ever deleted.

Edits that were made together share a `batch`: they begin and end in one transaction, so a step over many chunks is
applied completely or not at all. A chunk has at most one pending edit: a unique index enforces this, even between
processes that share a journal. `rule_exports` stores when rules were exported."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from ragfilter.basics import database
from ragfilter.errors import ConflictError, extra

with extra("chroma"):
    import sqlalchemy as sa
    from sqlalchemy.exc import IntegrityError

State = Literal["pending", "done", "undone", "rolled_back"]
Turn = Literal["undo", "redo"]
Kind = Turn | Literal["edit"]

edits = sa.Table(
    "rule_edits",
    sa.MetaData(),
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
exports = sa.Table(
    "rule_exports",
    sa.MetaData(),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    sa.Column("edit", sa.Integer, nullable=False),
)
PENDING = edits.c.state == "pending"
_CHUNK = edits.c.collection, edits.c.chunk_id
sa.Index("rule_edits_one_pending", *_CHUNK, unique=True, sqlite_where=PENDING, postgresql_where=PENDING)
sa.Index("rule_edits_of_chunk", *_CHUNK, edits.c.id)
sa.Index("rule_edits_of_edit", edits.c.of)
sa.Index("rule_edits_of_batch", edits.c.batch)


@dataclass(frozen=True, slots=True)
class Edit:
    """One entry. `before` and `after` are the stored rule texts, None for no rule; `at` is in UTC;
    `of` is the id of the edit that an undo or redo reverts or restores."""

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
    """A change to record: a chunk's rule before and after, and the edit it undoes or redoes."""

    chunk_id: str
    before: str | None
    after: str | None
    of: int | None = None


def turned(kind: Turn, edit: Edit) -> Entry:
    """The entry that reverts or restores `edit`."""
    before, after = edit.before, edit.after
    return Entry(edit.chunk_id, *((after, before) if kind == "undo" else (before, after)), edit.id)


@dataclass(frozen=True, slots=True)
class Step:
    """Edits that were made together: one edit, or a batch whose first is `edit`. `done` of them are in effect."""

    edit: Edit
    size: int
    done: int


class Journal(database.Book):
    """The journal in the database at `url`."""

    called = "The journal of edits"
    tables = (edits, exports)

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.let_go: set[int] = set()
        """Pending edits that were abandoned since this journal was opened."""

    def begin(
        self, entries: Sequence[Entry], *, who: str, collection: str, kind: Kind = "edit", batch: str | None = None
    ) -> tuple[Edit, ...]:
        """Record pending edits, all or none (several need a `batch`). Raises ConflictError if a chunk has one."""
        step = {"who": who, "collection": collection, "kind": kind, "state": "pending", "batch": batch}
        rows = [{"at": datetime.now(UTC), **step, **asdict(entry)} for entry in entries]
        try:
            with self.writing() as connection:
                begun = map(_edit, connection.execute(edits.insert().returning(edits), rows))
                return tuple(sorted(begun, key=lambda edit: edit.id))
        except IntegrityError:
            what = entries[0].chunk_id if batch is None else "one of these chunks"
            raise ConflictError(
                f"Another edit of {what} is under way.",
                remedy="Wait a moment, look at the rule again and repeat your change.",
            ) from None

    def finish(self, edit: Edit) -> tuple[Edit, ...]:
        """Mark the edits of this edit's step as done, and the edits they undo or redo as undone or
        done. Edits that are not pending stay as they are. Returns the step's edits."""
        inner = edits.alias("inner")
        about = sa.select(inner.c.of).where(_together(edit, inner), inner.c.state == "pending", inner.c.of.is_not(None))
        turned = edits.update().where(edits.c.id.in_(about))
        with self.writing() as connection:
            if edit.kind != "edit":
                connection.execute(turned.values(state="undone" if edit.kind == "undo" else "done"))
            connection.execute(_pending(edit).values(state="done"))
        return self.step(edit.id)

    def roll_back(self, edit: Edit) -> tuple[Edit, ...]:
        """Mark the pending edits of this edit's step as rolled back. Returns the step's edits."""
        with self.writing() as connection:
            connection.execute(_pending(edit).values(state="rolled_back"))
        return self.step(edit.id)

    def unfinished(self, collection: str | None = None, chunk_id: str | None = None) -> tuple[Edit, ...]:
        """The pending edits, oldest first."""
        return self._entries(_scope(collection, chunk_id).where(PENDING).order_by(edits.c.id))

    def history(self, collection: str, chunk_id: str | None = None, *, limit: int | None = 100) -> tuple[Edit, ...]:
        """The entries of a collection, or of one of its chunks, newest first."""
        return self._entries(_scope(collection, chunk_id).order_by(edits.c.id.desc()).limit(limit))

    def edited_rules(self, collection: str) -> dict[str, str | None]:
        """The rules after all edits of a collection, by chunk id; None for a removed rule."""
        query = _scope(collection, None).where(edits.c.state.in_(("done", "undone")))
        return {edit.chunk_id: edit.after for edit in self._entries(query.order_by(edits.c.id))}

    def step(self, edit_id: int) -> tuple[Edit, ...]:
        """The edit with this id and the others of its step, as they were recorded; empty if there is none."""
        batch = sa.select(edits.c.batch).where(edits.c.id == edit_id).scalar_subquery()
        query = sa.select(edits).where((edits.c.id == edit_id) | (edits.c.batch == batch))
        return self._entries(query.order_by(edits.c.id))

    def changed_since(self, edit: Edit) -> frozenset[str]:
        """The chunks of this edit's step that have a later edit in effect."""
        own, later = edits.alias("own"), edits.alias("later")
        in_effect = later.c.collection == edit.collection, later.c.kind == "edit", later.c.state == "done"
        joined = sa.select(later.c.chunk_id).join(own, (own.c.chunk_id == later.c.chunk_id) & (own.c.id < later.c.id))
        return frozenset(chunk_id for (chunk_id,) in self._read(joined.where(_together(edit, own), *in_effect)))

    def steps(
        self, collection: str, *, among: Container[str] | None = None, limit: int = 100, offset: int = 0
    ) -> tuple[Step, ...]:
        """The steps of a collection, newest first. With `among`, it is as if only these chunks had been edited."""
        newest = self._batches(collection, among)[offset : offset + limit]
        firsts = self._entries(sa.select(edits).where(edits.c.id.in_([each[0][0] for each in newest])))
        by_id = {edit.id: edit for edit in firsts}
        return tuple(Step(by_id[each[0][0]], len(each), sum(done for _, done in each)) for each in newest)

    def count_steps(self, collection: str, *, among: Container[str] | None = None) -> int:
        """The number of steps; `among` as for `steps`."""
        return len(self._batches(collection, among))

    def _batches(self, collection: str, among: Container[str] | None) -> list[list[tuple[int, bool]]]:
        """The ids of the edits of each step, and whether each is done, newest step first."""
        columns = (edits.c.id, edits.c.batch, edits.c.chunk_id, edits.c.state)
        query = sa.select(*columns).where(edits.c.collection == collection).order_by(edits.c.id)
        grouped: dict[str, list[tuple[int, bool]]] = {}
        for edit_id, batch, chunk_id, state in self._read(query):
            if among is None or chunk_id in among:
                grouped.setdefault(batch or str(edit_id), []).append((edit_id, state == "done"))
        return sorted(grouped.values(), key=lambda each: -each[0][0])

    def last_edit(self, collection: str) -> int:
        """The id of the last edit before any pending one, 0 if there is none. Rules read after this call include it."""
        ids = sa.select(sa.func.max(edits.c.id), sa.func.min(edits.c.id).filter(PENDING))
        ((last, pending),) = self._read(ids.where(edits.c.collection == collection))
        return pending - 1 if pending else last or 0

    def mark_exported(self, collection: str, last_edit: int) -> None:
        """Record that the collection's rules were exported as of this edit."""
        with self.writing() as connection:
            connection.execute(exports.delete().where(exports.c.collection == collection))
            row = {"collection": collection, "at": datetime.now(UTC), "edit": last_edit}
            connection.execute(exports.insert().values(row))

    def edited_since_export(self, collection: str, among: Collection[str] | None = None) -> dict[str, str | None]:
        """The chunks edited since the last export, with their rules at that time or, before the
        first export, before the first edit. `among` limits the chunks; None means all."""
        query = (
            sa.select(edits.c.chunk_id, edits.c.before)
            .outerjoin(exports, exports.c.collection == edits.c.collection)
            .where(
                edits.c.collection == collection,
                edits.c.id > sa.func.coalesce(exports.c.edit, 0),
                edits.c.state.in_(("done", "undone")),
            )
            .order_by(edits.c.id)
        )
        if among is not None:
            query = query.where(edits.c.chunk_id.in_(among))
        rules: dict[str, str | None] = {}
        for chunk_id, before in self._read(query):
            rules.setdefault(chunk_id, before)
        return rules

    def export_mark(self, collection: str) -> tuple[int, int, int]:
        """Changes whenever `edited_since_export` does, but takes the same time after any number of edits."""
        # SQLite uses the index of pending edits only if the state is written out.
        pending = edits.c.state == sa.bindparam(None, "pending", literal_execute=True)
        counts = (
            sa.select(sa.func.max(edits.c.id)),
            sa.select(sa.func.count(edits.c.chunk_id)).where(pending),
            sa.select(exports.c.edit).where(exports.c.collection == collection),
        )
        ((last, under_way, edit),) = self._read(sa.select(*(count.scalar_subquery() for count in counts)))
        return last or 0, under_way, edit or 0

    def turnable(self, kind: Turn, collection: str, chunk_id: str | None = None) -> Edit | None:
        """The edit to undo or redo next; None if there is none. Undo reverts the last edit that is done. Redo restores
        the one undone last, unless one was saved since."""
        in_scope = _scope(collection, chunk_id)
        saved = in_scope.where(edits.c.kind == "edit")
        if kind == "undo":
            return self._first(saved.where(edits.c.state == "done"), edits.c.id)
        last_saved = saved.where(edits.c.state.in_(("done", "undone"))).subquery()
        last = sa.select(sa.func.max(last_saved.c.id)).scalar_subquery()
        after = edits.alias("after")
        redone = edits.c.state == "undone", after.c.state == "done", after.c.id > last
        return self._first(in_scope.join(after, after.c.of == edits.c.id).where(*redone), after.c.id)

    def _entries(self, query: sa.Select[Any]) -> tuple[Edit, ...]:
        return tuple(map(_edit, self._read(query)))

    def _first(self, query: sa.Select[Any], order: sa.Column[int]) -> Edit | None:
        """The entry with the highest value of a column."""
        return next(iter(self._entries(query.order_by(order.desc()).limit(1))), None)


def _together(edit: Edit, table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Selects the edits of an edit's step."""
    return table.c.id == edit.id if edit.batch is None else table.c.batch == edit.batch


def _pending(edit: Edit) -> sa.Update:
    return edits.update().where(_together(edit, edits), PENDING)


def _scope(collection: str | None, chunk_id: str | None) -> sa.Select[Any]:
    wanted = {"collection": collection, "chunk_id": chunk_id}
    return sa.select(edits).filter_by(**{name: value for name, value in wanted.items() if value is not None})


def _edit(row: sa.Row[Any]) -> Edit:
    values = cast(dict[str, Any], dict(row._mapping))
    return Edit(at=database.in_utc(values.pop("at")), **values)
