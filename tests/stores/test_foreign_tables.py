"""Tables with vectors as LangChain, LlamaIndex, Haystack and people make them, opened in place."""

from __future__ import annotations

import json
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from waiting import PATIENT_S

from ragfilter.cli.program import main
from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.library.workspace import open_workspace
from ragfilter.model import UNRESTRICTED, User
from ragfilter.models.embedders import BUNDLED
from ragfilter.protocols import Vectors, Where
from ragfilter.rules import edits
from ragfilter.stores.base import Opening
from ragfilter.stores.postgres import tables
from ragfilter.stores.postgres.foreign import OPERATORS, TableStore

RULE = '{"contain":"fire"}'
TEXTS = ("A troll that is burned stays dead.", "Owls hoot at night.", "A boat carries four.")
MADE = {
    # langchain_postgres.PGVector
    "langchain": """
        CREATE TABLE langchain_pg_collection (uuid uuid PRIMARY KEY, name varchar UNIQUE,
            cmetadata json);
        CREATE TABLE langchain_pg_embedding (id varchar PRIMARY KEY, collection_id uuid
            REFERENCES langchain_pg_collection (uuid), embedding vector, document varchar,
            cmetadata jsonb);
        INSERT INTO langchain_pg_collection VALUES
            ('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'my notes'),
            ('6ba7b811-9dad-11d1-80b4-00c04fd430c8', 'others');
        INSERT INTO langchain_pg_embedding
            SELECT key, '6ba7b810-9dad-11d1-80b4-00c04fd430c8', vector, text, fields::jsonb
            FROM given;
        INSERT INTO langchain_pg_embedding
            SELECT 'other', '6ba7b811-9dad-11d1-80b4-00c04fd430c8', vector, text, '{}'
            FROM given LIMIT 1
    """,
    # langchain_postgres.PGVectorStore
    "langchain_table": """
        CREATE TABLE langchain_table (langchain_id uuid PRIMARY KEY, content text NOT NULL,
            embedding vector(384) NOT NULL, title text, langchain_metadata json);
        INSERT INTO langchain_table
            SELECT ('6ba7b81' || n || '-9dad-11d1-80b4-00c04fd430c8')::uuid, text, vector,
            fields::json ->> 'title', fields::json FROM given
    """,
    # llama_index.vector_stores.postgres.PGVectorStore
    "data_notes": """
        CREATE TABLE data_notes (id bigserial PRIMARY KEY, text varchar NOT NULL, metadata_ json,
            node_id varchar, embedding vector(384),
            text_search_tsv tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED);
        CREATE INDEX ON data_notes USING hnsw (embedding vector_cosine_ops);
        INSERT INTO data_notes (text, metadata_, node_id, embedding)
            SELECT text, (fields::jsonb || '{"_node_content": "{}", "_node_type": "x"}')::json,
            key, vector FROM given
    """,
    # haystack_integrations.document_stores.pgvector
    "haystack_documents": """
        CREATE TABLE haystack_documents (id varchar(128) PRIMARY KEY, embedding vector(384),
            content text, blob_data bytea, blob_meta jsonb, blob_mime_type varchar(255),
            meta jsonb);
        CREATE INDEX ON haystack_documents USING hnsw (embedding vector_ip_ops);
        INSERT INTO haystack_documents (id, embedding, content, meta)
            SELECT key, vector, text, fields::jsonb FROM given;
        INSERT INTO haystack_documents (id, content) VALUES ('not embedded', 'x')
    """,
    "plain": """
        CREATE TABLE plain ("No." int PRIMARY KEY, "the %% body" text, vec vector(384),
            title text, clearance int NOT NULL DEFAULT 0, "it's" date DEFAULT '2026-01-02');
        CREATE INDEX ON plain USING hnsw (vec vector_l2_ops);
        INSERT INTO plain SELECT n, text, vector, fields::json ->> 'title',
            coalesce((fields::json ->> 'clearance')::int, 0) FROM given
    """,
    "halves": """
        CREATE TABLE halves (id text PRIMARY KEY, text text, embedding halfvec, meta jsonb);
        INSERT INTO halves SELECT key, text, vector, fields::jsonb FROM given
    """,
}
NAMES = {"langchain": "my notes"}
SPACES = {"haystack_documents": "ip", "plain": "l2"}


def make(address: str, statements: str, vectors: Vectors) -> None:
    """A database with one of these tables, filled with the given values."""
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector")
        if connection.exec_driver_sql("SELECT to_regtype('halfvec')").scalar() is None:
            # pgvector before 0.7 has no halfvec, so this is only its name.
            connection.exec_driver_sql("CREATE DOMAIN halfvec AS vector")
        connection.exec_driver_sql("CREATE TEMP TABLE given (n int, key text, text text, vector vector, fields text)")
        fields = ({"title": "Trolls", "author": "x"}, {"title": "Owls"}, {"clearance": 4})
        for n, (text, vector, own) in enumerate(zip(TEXTS, vectors, fields, strict=True)):
            connection.exec_driver_sql(
                "INSERT INTO given VALUES (%s, %s, %s, %s::vector, %s)",
                (n, f"c{n}", text, tables.written(vector), json.dumps(own)),
            )
        for statement in statements.split(";"):
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.fixture(scope="session")
def vectors() -> Any:
    from ragfilter.models.embedders import BundledEmbedder

    return BundledEmbedder().embed([*TEXTS, "How do I kill a troll?"])


@pytest.fixture(params=MADE)
def made(request: pytest.FixtureRequest, address: str, vectors: Any) -> tuple[str, str]:
    """The name and the address of a table."""
    kind = request.param
    make(address, MADE[kind], vectors[:3])
    return NAMES.get(kind, kind), address


def key_of(name: str, n: int) -> str:
    """The id of a row."""
    return {"plain": f"{n}", "langchain_table": f"6ba7b81{n}-9dad-11d1-80b4-00c04fd430c8"}.get(name, f"c{n}")


@pytest.mark.model
@pytest.mark.parametrize("name", ["my_langchain_pg_embedding", "langchain_pg_embedding"])
def test_a_table_named_like_langchains_is_one_collection(address: str, vectors: Any, name: str) -> None:
    make(address, f"CREATE TABLE {name} AS SELECT key AS id, vector AS embedding, text FROM given", vectors[:3])
    store = TableStore(address)
    assert store.names() == [name]
    assert store.open(name, Opening()).count() == 3
    store.close()


@pytest.mark.model
def test_a_table_of_each_kind_is_asked_as_it_is(
    made: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: Any
) -> None:
    name, address = made
    for variable, value in sa.make_url(address).translate_connect_args().items():
        monkeypatch.setenv(f"PG{variable.upper()}", str(value))
    place = sa.make_url(address).set(password=None).render_as_string(hide_password=False)
    with open_workspace(tmp_path / "ws") as bench:
        found = bench.stores.open(name, Opening(place, BUNDLED), bench.load_embedder)
        assert [each.good for each in found] == [True] * 5
        theirs = bench.collection(name)
        assert (theirs.space, theirs.count()) == (SPACES.get(name, "cosine"), 3)
        result = bench[name].search("How do I kill a troll?", "adaptive-gap")
        first = result.kept[0].chunk
        assert (first.id, first.title, first.text) == (key_of(name, 0), "Trolls", TEXTS[0])
        own = {"it's": "2026-01-02"} if name == "plain" else {"author": "x"}
        assert dict(first.metadata).items() >= own.items()
        assert "_node_content" not in first.metadata
        # Clearance fails closed here too.
        kept = bench[name].search("How many people fit into a boat?", "full")
        assert key_of(name, 2) not in [hit.id for hit in kept]
        # Distances are those of the space.
        cosine = 1 - float(vectors[0] @ vectors[3])
        exact = {"l2": float(np.sum((vectors[0] - vectors[3]) ** 2)), "cosine": cosine, "ip": cosine}
        for metric in OPERATORS:
            asked = bench.stores.at(place).open(name, Opening(metric=metric))  # type: ignore[union-attr]
            ((nearest, distance), *_) = asked.nearest(vectors[3], 2)
            assert nearest == key_of(name, 0)
            assert distance == pytest.approx(exact[metric], abs=1e-4)
        # Nothing is written unless that is allowed; then rules are.
        save = {"chunk_id": first.id, "rule": RULE, "expected": None, "who": "me"}
        with pytest.raises(StoreError, match="open read-only"):
            edits.save(theirs, bench.journal, **save)  # type: ignore[arg-type]
        opening = Opening(place, BUNDLED, writable=True)
        bench.stores.open(name, opening, bench.load_embedder)
        if name == "plain":
            with pytest.raises(StoreError, match="no column for rules"):
                edits.save(theirs, bench.journal, **save)  # type: ignore[arg-type]
            return
        edits.save(theirs, bench.journal, **save)  # type: ignore[arg-type]
        assert bench.collection(name).rules([first.id, "x", "99"]) == {first.id: RULE}
        assert bench.collection(name).entries()[first.id].rule == RULE
        edits.save(theirs, bench.journal, **{**save, "rule": None, "expected": RULE})  # type: ignore[arg-type]
        assert bench.collection(name).chunks([first.id])[first.id] == first


def changed(address: str, statement: str) -> None:
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


SMALL = """
CREATE TABLE theirs (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), body text, note text,
    v vector(2), w vector(2), clearance int DEFAULT 0, meta json);
INSERT INTO theirs (body, note, v, w, meta) VALUES ('a body', 'a note', '[1,0]', '[0,1]',
    '{"title": "A"}')
"""


def test_columns_are_those_that_are_named(address: str) -> None:
    make(address, SMALL, np.eye(3, dtype=np.float32))
    store = TableStore(address)
    asked = {"text": "body", "title": "note", "embedding": "w", "id": "note"}
    (chunk,) = store.open("theirs", Opening(columns=asked)).chunks(["a note"]).values()
    assert (chunk.id, chunk.text, chunk.title) == ("a note", "a body", "a note")
    assert chunk.metadata.keys() == {"id"}
    assert store.open("theirs", Opening(columns=asked)).vectors(["a note"]).tolist() == [[0.0, 1.0]]
    for columns, metric, said in (
        ({"text": "nothing"}, "", "no column 'nothing'"),
        ({"embedding": "body"}, "", "holds text, not vectors"),
        ({}, "hamming", "is not a distance"),
    ):
        with pytest.raises(InputError, match=said):
            store.open("theirs", Opening(columns=columns, metric=metric))
    with pytest.raises(CollectionMissing, match="no table 'mine'") as error:
        store.collection("mine")
    assert error.value.remedy == "There are: theirs."
    store.close()


def test_columns_may_have_any_name(address: str) -> None:
    make(address, SMALL, np.eye(3, dtype=np.float32))
    changed(address, """ALTER TABLE theirs ADD f text DEFAULT 'f', ADD c int, ADD "a ""b'%%" int DEFAULT 1""")
    store = TableStore(address)
    (chunk,) = store.collection("theirs").entries().values()
    assert (chunk.clearance, chunk.department) == (0, None)
    (chunk,) = store.collection("theirs").chunks([chunk.id]).values()
    assert chunk.metadata.items() >= {"f": "f", "a \"b'%": 1}.items()
    store.close()


def test_a_rule_is_not_written_into_fields_that_are_a_list(address: str) -> None:
    make(address, SMALL, np.eye(3, dtype=np.float32))
    changed(address, "UPDATE theirs SET meta = '[1, 2]'")
    store = TableStore(address)
    store.opening = lambda name: Opening(writable=True)
    theirs = store.collection("theirs")
    (chunk_id,) = theirs.entries()
    with pytest.raises(StoreError):
        theirs.set_rules({chunk_id: RULE})
    theirs.set_rules({chunk_id: None})
    assert store.read("SELECT meta FROM theirs") == [([1, 2],)]
    changed(address, "DELETE FROM theirs")
    with pytest.raises(CollectionMissing, match="Fill it first"):
        theirs.check_not_empty()
    store.close()


def test_a_clearance_that_others_raise_hides_its_chunk_at_once(address: str) -> None:
    make(address, SMALL, np.eye(3, dtype=np.float32))
    store = TableStore(address)
    theirs = store.collection("theirs")
    everybody = Where(User())
    assert len(theirs.nearest(np.array([1, 0]), 9, where=everybody)) == 1
    for value in ("2", "NULL", "-1"):
        changed(address, f"UPDATE theirs SET clearance = {value}")
        assert theirs.nearest(np.array([1, 0]), 9, where=everybody) == []
        assert len(theirs.nearest(np.array([1, 0]), 9, where=Where(UNRESTRICTED))) == 1
    store.close()


def test_what_others_write_is_seen(address: str) -> None:
    make(address, SMALL, np.eye(3, dtype=np.float32))
    store = TableStore(address)
    theirs = store.collection("theirs")
    before, known = theirs.version, theirs.entries()
    changed(address, "INSERT INTO theirs (body, v) VALUES ('b', '[0,1]')")
    until = monotonic() + PATIENT_S
    while theirs.version == before:  # The server counts changes with a delay.
        assert monotonic() < until
    assert len(theirs.entries()) == len(known) + 1
    store.close()


@pytest.mark.model
def test_a_table_in_the_workspaces_own_database_is_opened_by_its_name(
    address: str, vectors: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(address, MADE["plain"], vectors[:3])
    monkeypatch.setenv("RAGFILTER_WORKSPACE", address)
    command = ["collections", "open", "plain", "--model", BUNDLED, "--column", "text=the % body"]
    assert main(command) == 0
    assert "plain is open" in capsys.readouterr().out
    assert main(["query", "troll", "-c", "plain", "-p", "adaptive-gap"]) == 0
    assert "Trolls" in capsys.readouterr().out
    assert main(["collections", "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)] == ["plain"]


def test_a_password_is_never_kept(tmp_path: Path) -> None:
    places = ("postgresql://me:hush@host/db", "postgresql://host/db?password=hush", "postgresql://h/us@h")
    with open_workspace(tmp_path / "ws") as bench:
        for place in places:
            with pytest.raises(InputError, match="contains a user or password") as error:
                bench.stores.open("t", Opening(place, BUNDLED), bench.load_embedder)
            assert "hush" not in str(error.value)
