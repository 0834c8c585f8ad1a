"""The first version: collections, and their distinct rules. Each collection has its own table of chunks, which
`tables.chunk_table` makes, so that its vectors have one length and its index contains no other collection's chunks."""

from __future__ import annotations

from ragfilter.errors import extra

with extra("postgres"):
    from alembic import op

revision = "0001"
down_revision = None

TABLES = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    """
    CREATE TABLE ragfilter_collections (
        id serial PRIMARY KEY,
        name text NOT NULL UNIQUE,
        embedder text NOT NULL,
        dimension integer NOT NULL,
        content text NOT NULL,
        version bigint NOT NULL,
        removed bigint NOT NULL,
        changed timestamptz NOT NULL DEFAULT now()
    )
    """,
    "CREATE TABLE ragfilter_rules (key bytea PRIMARY KEY, text text NOT NULL)",
)


def upgrade() -> None:
    """Make the tables."""
    for statement in TABLES:
        op.execute(statement)
