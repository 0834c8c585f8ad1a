"""Stores drafts of rules that await review, each as soon as it is made.

Source: docs/design.md#drafting. If a run is stopped or killed, no draft is lost, and the next run
skips the chunks that have one.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import TypeAdapter

from ragfilter.basics import database
from ragfilter.errors import extra
from ragfilter.rules.drafting import Draft

with extra("chroma"):
    import sqlalchemy as sa

_DRAFT = TypeAdapter(Draft)
_drafts = sa.Table(
    "rule_drafts",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("collection", sa.Text, nullable=False),
    sa.Column("chunk_id", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)


class DraftStore(database.Book):
    """The drafts in the database at `url`."""

    what = "drafts"
    called = "Keeping drafts"
    tables = (_drafts,)

    def drafts(self, collection: str) -> tuple[Draft, ...]:
        """All drafts, including failed ones, in the order in which they were made."""
        own = sa.select(_drafts.c.body).where(_drafts.c.collection == collection)
        return tuple(_DRAFT.validate_json(body) for (body,) in self._read(own.order_by("id")))

    def keep(self, collection: str, draft: Draft) -> None:
        """Store a draft, replacing an earlier one for its chunk. It is on disk on return."""
        body = _DRAFT.dump_json(draft).decode()
        with self._writing() as connection:
            connection.execute(_delete(collection), [{"gone": draft.chunk_id}])
            connection.execute(_drafts.insert().values(collection=collection, chunk_id=draft.chunk_id, body=body))

    def forget(self, collection: str, chunk_ids: Iterable[str]) -> None:
        """Remove these chunks' drafts."""
        rows = [{"gone": chunk_id} for chunk_id in chunk_ids]
        if rows:
            with self._writing() as connection:
                connection.execute(_delete(collection), rows)


def _delete(collection: str) -> sa.Delete:
    return _drafts.delete().where(_drafts.c.collection == collection, _drafts.c.chunk_id == sa.bindparam("gone"))
