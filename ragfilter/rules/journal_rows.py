"""The tables of the journal, and their rows as values.

Source: docs/design.md#journal.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from ragfilter.basics import database
from ragfilter.basics.extras import extra

with extra("chroma"):
    import sqlalchemy as sa

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
INDEXES = (
    sa.Index(
        "rule_edits_one_pending",
        edits.c.collection,
        edits.c.chunk_id,
        unique=True,
        sqlite_where=PENDING,
        postgresql_where=PENDING,
    ),
    sa.Index("rule_edits_of_chunk", edits.c.collection, edits.c.chunk_id, edits.c.id),
    sa.Index("rule_edits_of_edit", edits.c.of),
    sa.Index("rule_edits_of_batch", edits.c.batch),
)


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
    """The entry that takes `edit` back, or brings it back."""
    before, after = edit.before, edit.after
    return Entry(edit.chunk_id, *((after, before) if kind == "undo" else (before, after)), edit.id)


@dataclass(frozen=True, slots=True)
class Step:
    """What was changed together: one edit, or a batch of which `edit` is the first. `done` is how
    many of its edits are in effect."""

    edit: Edit
    size: int
    done: int


def to_row(
    entry: Entry, who: str, collection: str, kind: Kind, batch: str | None
) -> dict[str, object]:
    return {
        "at": datetime.now(UTC),
        "who": who,
        "collection": collection,
        "kind": kind,
        "state": "pending",
        "batch": batch,
        **asdict(entry),
    }


def to_edit(row: sa.Row[Any]) -> Edit:
    values = cast(dict[str, Any], dict(row._mapping))
    return Edit(at=database.in_utc(values.pop("at")), **values)
