"""The tables of a workspace in PostgreSQL, whose versions Alembic keeps."""

from __future__ import annotations

from pathlib import Path

from ragfilter.basics.database import MAKING
from ragfilter.basics.extras import extra
from ragfilter.errors import StoreError

with extra("postgres"):
    import sqlalchemy as sa
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

VERSIONS = "ragfilter_version"
SEARCHED_TEXT = "to_tsvector('english', left(c.title || ' ' || c.text, 200000))"
"""What the text search reads of a chunk `c`. PostgreSQL refuses more than a megabyte."""


def upgrade(connection: sa.Connection) -> None:
    """Bring the tables to the newest version, in the connection's transaction. Raises StoreError if
    they are newer than that."""
    script = ScriptDirectory(str(Path(__file__).parent))
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MAKING)))
    context = MigrationContext.configure(
        connection,
        opts={
            "version_table": VERSIONS,
            "fn": lambda revision, _: script._upgrade_revs("heads", revision),
        },
    )
    try:
        if context.get_current_heads() == tuple(script.get_heads()):
            return
        with Operations.context(context):
            context.run_migrations()
    except CommandError:
        raise StoreError(
            "The workspace was changed by a newer version of ragfilter.",
            remedy="Install that version here too.",
        ) from None


def chunk_table(number: int, dimension: int) -> str:
    """The statement that makes the table of one collection's chunks.

    A NULL clearance is one that cannot be read; it meets no condition, so its chunk is hidden.
    """
    return f"""
    CREATE TABLE {chunks_of(number)} (
        id text COLLATE "C" PRIMARY KEY,
        place bigserial,
        edited bigint NOT NULL,
        text text NOT NULL,
        title text NOT NULL,
        type text NOT NULL,
        source text NOT NULL,
        page bigint,
        refs text[] NOT NULL,
        clearance bigint,
        clearance_as_given text,
        department text,
        rule bytea REFERENCES ragfilter_rules (key),
        metadata text NOT NULL,
        fingerprint text NOT NULL,
        passage text NOT NULL,
        vector vector({dimension}) NOT NULL
    )
    """


def chunk_indexes(number: int) -> tuple[str, ...]:
    """The statements that index the chunks by what conditions name."""
    table = chunks_of(number)
    return (
        f"CREATE INDEX ON {table} (clearance, department)",
        f"CREATE INDEX ON {table} (source)",
        f"CREATE INDEX ON {table} (edited)",
        f"CREATE INDEX ON {table} USING gin ({SEARCHED_TEXT.replace('c.', '')})",
        f"CREATE INDEX ON {table} (rule) WHERE rule IS NOT NULL",
    )


def chunks_of(number: int) -> str:
    """The table of the chunks of a collection with this number."""
    return f"ragfilter_chunks_{number}"
