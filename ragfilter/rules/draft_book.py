"""Stores drafts of rules that await review, and the chunks that still need a draft.

Source: docs/design.md#drafting. Every draft is stored before the next chunk is asked about. So a
run that was paused or killed continues where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict

from ragfilter.answer.usage import total
from ragfilter.basics import database
from ragfilter.basics.extras import extra
from ragfilter.protocols import Usage
from ragfilter.rules.draft import Draft, fields, of_fields

with extra("chroma"):
    import sqlalchemy as sa

_drafts = sa.Table(
    "rule_drafts",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("collection", sa.Text, nullable=False),
    sa.Column("chunk_id", sa.Text, nullable=False),
    sa.Column("body", sa.Text),
    sa.Column("drafted", sa.Boolean, nullable=False),
    sa.UniqueConstraint("collection", "chunk_id"),
)
_calls = database.table(
    "rule_draft_usage",
    collection=database.TEXT,
    chunk_id=database.TEXT,
    prompt_tokens=database.WHOLE,
    completion_tokens=database.WHOLE,
    estimated=sa.Boolean(),
)


class DraftBook(database.Book):
    """The drafts in the database at `url`."""

    what = "drafts"
    called = "Keeping drafts"
    tables = (_drafts, _calls)

    def want(self, collection: str, chunk_ids: Sequence[str]) -> None:
        """Queue these chunks for a draft, after those that are queued. Their drafts are kept
        and not made again; failed ones are."""
        if not chunk_ids:
            return
        failed = _drafts.delete().where(
            _drafts.c.collection == collection,
            _drafts.c.chunk_id == sa.bindparam("again"),
            _drafts.c.body.is_not(None),
            ~_drafts.c.drafted,
        )
        with self._writing() as connection:
            connection.execute(failed, [{"again": chunk_id} for chunk_id in chunk_ids])
            rows = connection.execute(
                sa.select(_drafts.c.chunk_id).where(_drafts.c.collection == collection)
            )
            there = {chunk_id for (chunk_id,) in rows}
            new = [
                {"collection": collection, "chunk_id": i, "body": None, "drafted": False}
                for i in dict.fromkeys(chunk_ids)
                if i not in there
            ]
            if new:
                connection.execute(_drafts.insert(), new)

    def waiting(self, collection: str) -> tuple[str, ...]:
        """The queued chunks that have no draft yet, in order."""
        mine = (_drafts.c.collection == collection, _drafts.c.body.is_(None))
        found = sa.select(_drafts.c.chunk_id).where(*mine).order_by(_drafts.c.id)
        return tuple(chunk_id for (chunk_id,) in self._read(found))

    def drafts(self, collection: str) -> tuple[Draft, ...]:
        """All drafts, including failed ones."""
        mine = (_drafts.c.collection == collection, _drafts.c.body.is_not(None))
        found = sa.select(_drafts.c.body).where(*mine).order_by(_drafts.c.id)
        return tuple(of_fields(json.loads(body)) for (body,) in self._read(found))

    def keep(self, collection: str, draft: Draft) -> None:
        """Store the draft of a queued chunk, and what it used. It is on disk on return."""
        mine = (_drafts.c.collection == collection, _drafts.c.chunk_id == draft.chunk_id)
        body = json.dumps(dict(fields(draft)))
        kept = _drafts.update().where(*mine).values(body=body, drafted=draft.rule is not None)
        with self._writing() as connection:
            connection.execute(kept)
            connection.execute(_calls.insert(), _used(collection, draft))

    def count(self, collection: str, draft: Draft) -> None:
        """Remember what a draft used that is not stored."""
        with self._writing() as connection:
            connection.execute(_calls.insert(), _used(collection, draft))

    def used(self, collection: str, among: Container[str]) -> Usage:
        """What all drafts for these chunks have used so far, including those that failed, were
        interrupted or have been removed."""
        columns = (_calls.c.prompt_tokens, _calls.c.completion_tokens, _calls.c.estimated)
        calls = sa.select(_calls.c.chunk_id, *columns).where(_calls.c.collection == collection)
        return total(Usage(*used) for chunk_id, *used in self._read(calls) if chunk_id in among)

    def forget(self, collection: str, chunk_ids: Iterable[str]) -> None:
        """Remove these chunks' drafts, and remove the chunks from the queue."""
        mine = (_drafts.c.collection == collection, _drafts.c.chunk_id == sa.bindparam("gone"))
        rows = [{"gone": chunk_id} for chunk_id in chunk_ids]
        if rows:
            with self._writing() as connection:
                connection.execute(_drafts.delete().where(*mine), rows)


def _used(collection: str, draft: Draft) -> dict[str, object]:
    return {"collection": collection, "chunk_id": draft.chunk_id, **asdict(draft.usage)}
