"""The tables of a workspace in PostgreSQL, versioned with Alembic; chunks as rows, and conditions on rows as SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ragfilter.basics.database import MAKING
from ragfilter.errors import StoreError, extra
from ragfilter.model import Chunk
from ragfilter.protocols import Vectors, Where
from ragfilter.stores.copies import StoredRow, text_key
from ragfilter.stores.metadata import own_fields
from ragfilter.text.normalise import mend_characters

with extra("postgres"):
    import sqlalchemy as sa
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError
    from psycopg import Cursor

VERSIONS = "ragfilter_version"
SEARCHED_TEXT = "to_tsvector('english', left(c.title || ' ' || c.text, 200000))"
"""The indexed text of a chunk `c` for text search. PostgreSQL refuses more than a megabyte."""
FIELDS: Mapping[str, str] = {
    "id": 'text COLLATE "C" PRIMARY KEY',
    "text": "text NOT NULL",
    "title": "text NOT NULL",
    "type": "text NOT NULL",
    "source": "text NOT NULL",
    "page": "bigint",
    "refs": "text[] NOT NULL",
    "clearance": "bigint",
    "clearance_as_given": "text",
    "department": "text",
    "rule": "bytea REFERENCES ragfilter_rules (key)",
    "metadata": "text NOT NULL",
    "fingerprint": "text NOT NULL",
    "passage": "text NOT NULL",
    "vector": "vector NOT NULL",
    "edited": "bigint NOT NULL",
}
"""The columns of a chunk. A NULL clearance is unreadable; it meets no condition, so the chunk is hidden."""
ENTRY = "c.id, c.title, c.type, c.source, c.refs, c.clearance, c.department, r.text"
"""The columns of a catalogue entry; the rule's text comes from `ragfilter_rules`, as `r`."""
WHOLE = f"{ENTRY}, c.text, c.page, c.metadata"

COLUMNS = "id, name, embedder, dimension, content, version"
COLLECTIONS = sa.table("ragfilter_collections", *map(sa.column, (*COLUMNS.split(", "), "removed", "changed")))

Parameters = dict[str, Any]


def upgrade(connection: sa.Connection) -> None:
    """Upgrade the tables to the newest version, in this transaction. Raises StoreError if they are newer than that."""
    script = ScriptDirectory(str(Path(__file__).parent))
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MAKING)))
    context = MigrationContext.configure(
        connection, opts={"version_table": VERSIONS, "fn": lambda revision, _: script._upgrade_revs("heads", revision)}
    )
    try:
        with Operations.context(context):
            context.run_migrations()
    except CommandError:
        message = "The workspace was changed by a newer version of ragfilter."
        raise StoreError(message, remedy="Install that version here too.") from None


def chunks_of(collection: sa.Row[Any]) -> str:
    """The name of the table for the chunks of a collection, given its row with the columns `COLUMNS`."""
    return f"ragfilter_chunks_{collection.id}"


def chunk_table(table: str, dimension: int) -> str:
    """The statement that creates the table for one collection's chunks."""
    columns = ", ".join(f"{name} {kind}" for name, kind in FIELDS.items())
    return f"CREATE TABLE {table} (place bigserial, {columns})".replace("vector vector", f"vector vector({dimension})")


def chunk_indexes(table: str) -> tuple[str, ...]:
    """The statements that create the indexes for conditions on chunks."""
    return (
        f"CREATE INDEX ON {table} (clearance, department)",
        f"CREATE INDEX ON {table} (source)",
        f"CREATE INDEX ON {table} (edited)",
        f"CREATE INDEX ON {table} USING gin ({SEARCHED_TEXT.replace('c.', '')})",
        f"CREATE INDEX ON {table} (rule) WHERE rule IS NOT NULL",
    )


def rule_key(rule: str) -> bytes:
    """The key of a rule text among the distinct rules."""
    return sha256(plain(rule).encode()).digest()


def plain(text: str) -> str:
    """Remove NUL characters from `text`, which PostgreSQL cannot store."""
    return mend_characters(text).replace("\0", "\ufffd")


def holdable(ids: Iterable[str]) -> list[str]:
    """The distinct ids that PostgreSQL can store; others cannot occur there."""
    return [i for i in dict.fromkeys(ids) if plain(i) == i]


def written(vector: Vectors) -> str:
    """Write a vector in pgvector's text form."""
    return f"[{','.join(map(repr, vector.tolist()))}]"


def read(text: str) -> Vectors:
    """Read a vector from pgvector's text form."""
    return np.array(text[1:-1].split(","), dtype=np.float32)


def copy_in(cursor: Cursor[Any], table: str, rows: Iterable[StoredRow], edited: int) -> None:
    """Copy rows into a table with the columns of chunks."""
    with cursor.copy(f"COPY {table} ({', '.join(FIELDS)}) FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row(_fields(row, edited))


def _fields(row: StoredRow, edited: int) -> tuple[Any, ...]:
    chunk = row.chunk
    as_given = row.clearance_as_given
    return (
        chunk.id,
        plain(chunk.text),
        plain(chunk.title),
        plain(chunk.type),
        plain(chunk.source),
        chunk.page,
        [plain(ref) for ref in chunk.refs],
        chunk.clearance,
        None if as_given is None else plain(as_given),
        plain(chunk.department or "").strip(),
        rule_key(chunk.rule) if chunk.rule else None,
        json.dumps(dict(chunk.metadata)),
        row.fingerprint,
        text_key(chunk.passage),
        written(row.vector),
        edited,
    )


def to_entry(row: Sequence[Any], **content: Any) -> Chunk:
    """The catalogue entry of a row of `ENTRY`; with its `content`, a complete chunk."""
    chunk_id, title, kind, source, refs, clearance, department, rule = row[:8]
    # It is unknown who can see a chunk whose department has no name.
    known = None if department is None else clearance
    return Chunk(
        chunk_id,
        title=title,
        type=kind,
        source=source,
        refs=tuple(refs),
        clearance=known,
        department=department or None,
        rule=rule or None,
        loaded=bool(content),
        **content,
    )


def to_chunk(row: Sequence[Any]) -> Chunk:
    """The complete chunk of a row of `WHOLE`."""
    *_, text, page, own = row
    return to_entry(row, text=text, page=page, metadata=own_fields(own))


def condition(where: Where) -> tuple[str, Parameters]:
    """`where` as SQL over the chunks `c`, with its parameters. It fails closed: no comparison with NULL is true."""
    parts, parameters = ["true"], Parameters()
    user = where.user
    if user is not None and not user.unrestricted:
        parts.append("c.clearance BETWEEN 0 AND %(level)s AND c.department = ANY(%(departments)s)")
        parameters |= {"level": user.level, "departments": ["", *map(plain, user.departments)]}
    if where.sources is not None:
        parts.append("c.source = ANY(%(sources)s)")
        parameters["sources"] = list(map(plain, where.sources))
    if where.rules is not None:
        parts.append("(c.rule IS NULL OR c.rule = ANY(%(rules)s))")
        parameters["rules"] = list(map(rule_key, where.rules))
    return " AND ".join(parts), parameters
