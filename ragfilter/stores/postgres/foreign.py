"""Foreign tables with vectors, read in place, as LangChain, LlamaIndex, Haystack and people make them. Each row is a
chunk: id, text, vector, and fields in columns or in JSON. Only rules can be changed, if changes are allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast

from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.model import Chunk
from ragfilter.protocols import Vectors, Where
from ragfilter.stores import metadata
from ragfilter.stores.base import Opening
from ragfilter.stores.postgres import tables
from ragfilter.stores.postgres.search import RowCollection, SqlSearch, VectorDatabase

Metric = Literal["l2", "cosine", "ip"]
OPERATORS: Mapping[Metric, str] = {"l2": "<->", "cosine": "<=>", "ip": "<#>"}
DISTANCES = {"l2": "({})^2", "cosine": "{}", "ip": "1 + ({})"}
"""Converts an operator's result to the distance of each space, as Chroma defines it."""
IDS = ("langchain_id", "node_id")
TEXTS = ("text", "document", "content", "chunk", "body", "page_content", "chunk_text")
TEXT_TYPES = ("text", "varchar")
COMPARED = {"int2": "int8", "int4": "int8", "int8": "int8", "uuid": "uuid"}
"""The types in which keys are compared, so that their index is used; others are compared as texts."""
POSSIBLE: Mapping[str, Callable[[str], object]] = {
    "int8": lambda i: re.fullmatch("0|-?[1-9][0-9]{0,18}", i) and -(2**63) <= int(i) < 2**63,
    "uuid": re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch,
    "text": lambda i: tables.plain(i) == i,
}
"""Whether a text can be a key of a type; comparing another one would fail."""
JSON_TYPES = ("json", "jsonb")
VECTOR_TYPES = ("vector", "halfvec")
UNREAD = (*VECTOR_TYPES, "sparsevec", "bit", "bytea", "tsvector")
"""Column types that are not fields."""
INSIDES = ("_node_content", "_node_type")
"""Keys under which LlamaIndex stores the chunk a second time, next to the fields."""
PARTED = "langchain_pg_embedding"
"""LangChain's table, which holds many collections; `langchain_pg_collection` names them."""
TABLES = f"""
SELECT c.oid::regclass::text, c.oid::int8, json_agg(json_build_array(a.attname, t.typname, a.atttypmod,
    coalesce(a.attnum = ANY(p.indkey) AND p.indnatts = 1, false)) ORDER BY a.attnum)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pg_index p ON p.indrelid = c.oid AND p.indisprimary
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'm')
    AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND c.relname !~ '^ragfilter_' AND has_table_privilege(c.oid, 'SELECT')
GROUP BY c.oid HAVING bool_or(t.typname IN {VECTOR_TYPES})
"""
OPERATOR_CLASS = """
SELECT o.opcname FROM pg_index i JOIN pg_opclass o ON o.oid = i.indclass[0]
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = %(table)s AND a.attname = %(column)s
"""
CHANGES = """
SELECT pg_stat_get_tuples_inserted(%(table)s::oid), pg_stat_get_tuples_updated(%(table)s::oid),
    pg_stat_get_tuples_deleted(%(table)s::oid), pg_relation_size(%(table)s::oid)
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `size` is the size of its type, such as the dimension of vectors; -1 if it has none."""

    name: str
    type: str
    size: int
    key: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table with vectors, or the part of one with the rows of one LangChain collection."""

    sql: str
    oid: int
    columns: Mapping[str, Column]
    part: str = ""

    def column(self, name: str) -> Column:
        """The column with this name. Raises InputError."""
        if name not in self.columns:
            raise InputError(f"{self.sql} has no column {name!r}.", remedy=f"It has: {', '.join(self.columns)}.")
        return self.columns[name]

    def choices(self) -> dict[str, list[str]]:
        """The columns that may hold id, text, vector, and fields as JSON."""
        kinds = {"text": TEXT_TYPES, "embedding": VECTOR_TYPES, "metadata": JSON_TYPES}
        fitting = {f: [name for name, c in self.columns.items() if c.type in of] for f, of in kinds.items()}
        return {"id": [name for name, c in self.columns.items() if c.type not in UNREAD], **fitting}

    def guess(self) -> dict[str, str]:
        """The columns that probably hold id, text and vector, judged by names and types."""
        fitting, key = self.choices(), next((name for name, c in self.columns.items() if c.key), "")
        ids, texts = fitting["id"], fitting["text"]
        return {
            "id": next((name for name in IDS if name in ids), key or ids[0]),
            "text": next((name for name in TEXTS if name in texts), next(iter(texts), "")),
            "embedding": fitting["embedding"][0],
        }


class TableCollection(RowCollection):
    """One foreign table."""

    _store: TableStore

    ours = False
    embedder = ""
    content = ""

    def __init__(self, store: TableStore, name: str, opening: Opening | None = None) -> None:
        """`opening` is by default the one that the store knows."""
        super().__init__(store, name, store.look_up(name))
        self._table = table = self.raw()
        opening = opening or store.opening(name)
        chosen_columns, metric = opening.columns, opening.metric
        self._of = {**table.guess(), **chosen_columns}
        for field, column in chosen_columns.items():
            kind = table.column(column).type
            if field == "embedding" and kind not in VECTOR_TYPES:
                message = f"The column {column!r} holds {kind}, not vectors."
                raise InputError(message, remedy="Name a column of the type vector or halfvec.")
        if metric not in ("", *OPERATORS):
            raise InputError(f"{metric!r} is not a distance.", remedy=f"Choose one of: {', '.join(OPERATORS)}.")
        self._metric = cast(Metric, metric)
        self._vector = table.column(self._of["embedding"])
        self._key = table.column(self._of["id"])
        choices = table.choices()
        self._json = [name for name in choices["metadata"] if chosen_columns.get("metadata", name) == name]
        own = {self._of["text"], self._key.name, *self._json}
        self._plain = {name: name for name in choices["id"] if name not in own}
        self._plain |= {f: c for f, c in chosen_columns.items() if f not in ("id", "text", "embedding", "metadata")}
        self._key_name, self._vector_name = f"c.{_name(self._key.name)}", f"c.{_name(self._vector.name)}"
        # All fields of a row: its columns as JSON, then each JSON column.
        plain = ", ".join(f"c.{_name(column)} AS {_name(field)}" for field, column in self._plain.items())
        inside = (f"c.{_name(name)}" for name in self._json)
        self._selected = ", ".join((f"(SELECT to_jsonb(f.*) FROM (SELECT {plain}) f)", *inside))

    @cached_property
    def space(self) -> Metric:
        """The chosen metric, or the metric of the vectors' index; cosine without either."""
        if self._metric:
            return self._metric
        classes = self._store.read(OPERATOR_CLASS, {"table": self._table.oid, "column": self._vector.name})
        return next((metric for metric in OPERATORS if any(f"_{metric}_" in name for (name,) in classes)), "cosine")

    @property
    def version(self) -> str:
        """The server's count of changes. Changes by others may take ten seconds to show."""
        (counts,) = self._store.read(CHANGES, {"table": self._table.oid})
        return ":".join(map(str, (self._table.oid, *counts, self._store.edits)))

    def count(self) -> int:
        condition, parameters = self._among(None)
        query = f"SELECT count(*) FROM {self._table.sql} c WHERE {condition}"
        return int(self._store.read(query, parameters)[0][0])

    def nearest(
        self, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        # Read the fields of the hits again, so that no clearance is outdated.
        pairs = super().nearest(vector, n, ids=ids, where=where)
        if where is not None:
            admits = metadata.admission(where)
            now = dict(self._read_entries([i for i, _ in pairs]))
            pairs = [(i, d) for i, d in pairs if i in now and admits(now[i])]
        return list({i: (i, d) for i, d in reversed(pairs)}.values())[::-1]

    def search(self, ids: Sequence[str] | None, where: Where | None) -> SqlSearch:
        by = f"{self._vector_name} {OPERATORS[self.space]} %(query)s::{self._vector.type}"
        known = self.entries()
        if where is not None or ids is not None:
            admits, among = metadata.admission(where or Where()), known if ids is None else dict.fromkeys(ids)
            few = [i for i in among if i in known and admits(known[i])]
            ids = few if len(few) < len(known) else None
        condition, parameters = self._among(ids)
        return SqlSearch(
            self._table.sql,
            f"{self._key_name}::text",
            by,
            DISTANCES[self.space].format(by),
            condition,
            parameters,
            max(0, self._vector.size),
            len(known) if ids is None else len(ids),
            len(known),
        )

    def known_chunks(self, ids: Sequence[str]) -> Iterator[Chunk]:
        text = f"c.{_name(self._of['text'])}::text" if self._of["text"] else "''"
        for i, content, *own in self._get(ids, f"{text}, {self._selected}"):
            yield metadata.to_chunk(i, self._fields(*own), content)

    def known_vectors(self, ids: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        return ((i, tables.read(text)) for i, text in self._get(ids, f"{self._vector_name}::text"))

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        """Replace rules, all or none."""
        self.check_writable()
        condition, parameters = self._among(None)
        update = (
            f"UPDATE {self._table.sql} c SET {self._rule_change} "
            "FROM unnest(%(keys)s::text[], %(rules)s::text[]) AS new (id, rule) "
            f"WHERE {self._key_name}::text = new.id AND {condition} RETURNING new.id"
        )
        values = {
            **parameters,
            "keys": [tables.plain(i) for i in rules],
            "rules": [tables.plain(rule) if rule else None for rule in rules.values()],
        }
        with self._store.writing() as connection:
            self.check_known(rules, connection.exec_driver_sql(update, values).scalars())
        self._store.edits += 1

    @property
    def _rule_change(self) -> str:
        column = self._plain.get(metadata.RULE_KEY)
        if column is not None:
            return f"{_name(column)} = new.rule"
        if not self._json:
            message = f"The table {self._name!r} has no column for rules."
            raise StoreError(message, remedy=f"Add a column {metadata.RULE_KEY} of the type text.")
        name, key = _name(self._json[0]), metadata.RULE_KEY
        kind = self._table.column(self._json[0]).type
        now = f"coalesce(c.{name}::jsonb, '{{}}')"
        # jsonb_set fails for an array, to which || would append.
        return (
            f"{name} = (CASE WHEN new.rule IS NULL THEN {now} - '{key}' "
            f"ELSE jsonb_set({now}, '{{{key}}}', to_jsonb(new.rule)) END)::{kind}"
        )

    @staticmethod
    def _fields(plain: Mapping[str, Any], *inside: object) -> dict[str, Any]:
        """The fields of a row. A column takes precedence over a JSON field of the same name."""
        fields: dict[str, Any] = {}
        for own in inside:
            fields |= own if isinstance(own, dict) else {}
        return {k: v for k, v in (fields | dict(plain)).items() if k not in INSIDES}

    def _read_entries(self, ids: Sequence[str] | None) -> Iterator[tuple[str, Chunk]]:
        for i, *own in self._get(ids, self._selected):
            yield i, metadata.to_entry(i, self._fields(*own))

    def _get(self, ids: Sequence[str] | None, fields: str) -> Iterable[tuple[Any, ...]]:
        """Yield the id and these fields of the known ones among these chunks, or of all."""
        condition, parameters = self._among(ids)
        query = f"SELECT {self._key_name}::text, {fields} FROM {self._table.sql} c WHERE {condition}"
        return cast(Iterable[tuple[Any, ...]], self._store.read(query, parameters))

    def _among(self, ids: Sequence[str] | None) -> tuple[str, tables.Parameters]:
        """The condition that a row is one of these chunks, or any chunk, with its parameters."""
        parts = [f"{self._vector_name} IS NOT NULL", f"{self._key_name} IS NOT NULL"]
        parameters = tables.Parameters()
        if self._table.part:
            parts.append("c.collection_id = %(part)s::uuid")
            parameters["part"] = self._table.part
        if ids is not None:
            own, kind = self._key.type, COMPARED.get(self._key.type, "text")
            key = self._key_name if own in (*COMPARED, *TEXT_TYPES) else f"{self._key_name}::text"
            parts.append(f"{key} = ANY(%(ids)s::{kind}[])")
            parameters["ids"] = list(filter(POSSIBLE[kind], ids))
        return " AND ".join(parts), parameters


class TableStore(VectorDatabase[TableCollection]):
    """The tables with vectors in a foreign database. Thread-safe. Raises StoreError."""

    kind = TableCollection
    called = "The database"

    def __init__(self, address: str) -> None:
        """Open the database at an address. Raises InputError, StoreUnavailable."""
        self._tables: dict[str, Table] = {}
        self.edits = 0
        """The number of times this object has changed rules."""
        super().__init__(address)

    def names(self) -> list[str]:
        """The names of everything that can be opened, in order."""
        tables: dict[str, Table] = {}
        for sql, oid, columns in self.read(TABLES):
            table = Table(sql, oid, {name: Column(name, *about) for name, *about in columns})
            parts = self._parts(sql) if sql.rpartition(".")[2] == PARTED else []
            tables |= {name: replace(table, part=uuid) for name, uuid in parts} or {sql: table}
        self._tables = tables
        return sorted(tables)

    def _parts(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """The names of LangChain's collections in its table `sql`, with their ids; empty if they cannot be read."""
        named = f"{sql.removesuffix('_embedding')}_collection"
        ((readable,),) = self.read("SELECT has_table_privilege(to_regclass(%(named)s), 'SELECT')", {"named": named})
        return self.read(f"SELECT name, uuid::text FROM {named}") if readable else []

    def look_up(self, name: str) -> Table:
        """The table, or part of one, called `name`. Raises CollectionMissing."""
        if name not in self._tables and name not in (names := self.names()):
            message = f"There is no table {name!r} with vectors in {self.where}."
            remedy = f"There are: {', '.join(names)}." if names else "Name another database."
            raise CollectionMissing(message, remedy=remedy)
        return self._tables[name]

    def open(self, name: str, opening: Opening) -> TableCollection:
        """Open the table called `name` with these columns and this metric. Raises CollectionMissing, InputError."""
        return TableCollection(self, name, opening)

    def outdated(self, version: str) -> bool:
        """Whether a table has changed since this version, as far as this process saw. Does not query the database."""
        table, _, _ = version.partition(":")
        seen = (version for version, _ in self.catalogues.values())
        return any(each != version and each.startswith(f"{table}:") for each in seen)


def _name(name: str) -> str:
    """Quote a column's name for SQL with parameters."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
