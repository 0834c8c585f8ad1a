"""Hits are read in the forms in which stores and databases return them.

The forms are those of the clients' own documentation and source: qdrant-client, pymilvus, lancedb, elasticsearch,
pinecone, pymongo, redisvl, SQLAlchemy, sqlite3 (whose rows are like asyncpg's), Supabase's match_documents, and dumps
of LangChain's and Haystack's documents.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections import UserDict, namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import ragfilter as rf
from ragfilter.model import Metric

QUERY = "How strong is a troll?"
UUID = uuid.UUID(int=7)
VECTOR = [0.125 * i for i in range(384)]
Row = namedtuple("Row", "id text distance embedding")


class MilvusHit(UserDict[str, Any]):
    """As pymilvus.client.search_result.Hit of a collection with another primary key."""

    @property
    def id(self) -> Any:
        return self["pk"]


def of_database(kind: str) -> Any:
    """A row of a database, in the forms that drivers have."""
    columns = "'a' AS id, 't' AS text, 0.25 AS distance, x'00' AS embedding"
    if kind == "sqlite3":
        connection = sqlite3.connect(":memory:")
        connection.row_factory = sqlite3.Row
        row = connection.execute(f"SELECT {columns}").fetchone()
        connection.close()
        return row
    with sa.create_engine("sqlite://").connect() as session:
        return session.execute(sa.text(f"SELECT {columns}")).one()


POINT = {"id": str(UUID), "version": 3, "score": 0.5, "vector": VECTOR}
CASES: dict[str, tuple[Any, Metric, str, float]] = {
    "qdrant": (
        SimpleNamespace(**POINT | {"id": 7}, payload={"text": "t", "id": "x"}, shard_key=None, order_value=None),
        "euclidean",
        "7",
        0.25,
    ),
    "qdrant, REST": (POINT | {"payload": {"content": "t"}}, "similarity", str(UUID), 0.5),
    "qdrant, LangChain": (
        POINT | {"payload": {"page_content": "t", "metadata": {"page": 3}}},
        "similarity",
        str(UUID),
        0.5,
    ),
    "milvus": ({"id": 5, "distance": 0.25, "entity": {"text": "t", "v": VECTOR}}, "l2", "5", 0.25),
    "milvus, COSINE": ({"id": 5, "distance": 0.75, "entity": {"text": "t"}}, "similarity", "5", 0.25),
    "milvus, RRF": ({"id": 5, "distance": 0.03, "entity": {"text": "t"}}, "rank", "5", 1),
    "milvus, primary key": (MilvusHit({"pk": "x", "distance": 0.25, "entity": {"text": "t"}}), "l2", "x", 0.25),
    "lance": ({"id": "a", "text": "t", "vector": VECTOR, "_distance": 0.25}, "l2", "a", 0.25),
    "elasticsearch": (
        {"_index": "i", "_id": "a", "_score": 0.75, "_source": {"text": "t", "id": "x"}},
        "similarity",
        "a",
        0.25,
    ),
    "pinecone": ({"id": "a", "score": 0.75, "values": VECTOR, "metadata": {"text": "t"}}, "similarity", "a", 0.25),
    "pinecone, records": ({"_id": "a", "_score": 0.75, "fields": {"text": "t"}}, "rank", "a", 1),
    "mongodb": ({"_id": UUID, "text": "t", "score": 0.75}, "similarity", str(UUID), 0.25),
    "redis": ({"id": "doc:1", "content": "t", "vector_distance": "0.25"}, "cosine", "doc:1", 0.25),
    "supabase": ({"id": 1, "content": "t", "metadata": {"text": "x"}, "similarity": 0.75}, "similarity", "1", 0.25),
    "dump of langchain": (
        {"id": "a", "metadata": {"id": "x", "score": 9}, "page_content": "t", "type": "Document"},
        "rank",
        "a",
        1,
    ),
    "dump of haystack": (
        {"id": "a", "content": "t", "meta": {"text": "x"}, "score": 0.75, "embedding": VECTOR},
        "similarity",
        "a",
        0.25,
    ),
    "named tuple": (Row("a", "t", 0.25, VECTOR), "cosine", "a", 0.25),
    "sqlite3": (of_database("sqlite3"), "cosine", "a", 0.25),
    "sqlalchemy": (of_database("row"), "cosine", "a", 0.25),
    "numpy": ({"id": np.int64(3), "text": "t", "distance": np.float32(0.25)}, "cosine", "3", 0.25),
}


def test_a_hit_is_read_as_its_store_returns_it() -> None:
    for form in CASES:
        doc, metric, chunk_id, distance = CASES[form]
        result = rf.Filter("adaptive-gap")(QUERY, [doc], metric=metric)
        hit = result[0]
        assert (hit.id, hit.chunk.text, hit.distance) == (chunk_id, "t", distance), form
        assert (hit.chunk.type, hit.chunk.title) == ("", ""), form
        assert len(json.dumps(dict(hit.chunk.metadata))) < 100, form
        assert hit.doc is doc, form
        missing = ("The metric is rank, but 1 of 1 scores is missing, so only the order given is used.",)
        assert result.warnings == (missing if form == "dump of langchain" else ())


@pytest.mark.parametrize("form", ["qdrant, LangChain", "milvus", "elasticsearch", "pinecone"])
def test_what_hides_a_chunk_counts_wherever_a_hit_has_it(form: str) -> None:
    secret = json.loads(json.dumps(CASES[form][0]).replace("{}", '{"x": 1}'))

    def hide(fields: dict[str, Any]) -> bool:
        if "text" in fields or "page" in fields:
            fields["clearance"] = 3
            return True
        return any(hide(each) for each in fields.values() if isinstance(each, dict))

    assert hide(secret)
    flt = rf.Filter("full")
    assert [len(flt(QUERY, [secret], user=rf.User(level))) for level in (2, 3)] == [0, 1]


def test_a_store_that_measures_otherwise_is_told() -> None:
    for form, metric, right in [
        ("qdrant, REST", "l2", "euclidean"),
        ("qdrant, REST", "similarity", ""),
        ("milvus", "euclidean", "l2"),
        ("milvus", "cosine", "similarity"),
        ("milvus", "ip", "similarity"),
        ("milvus, COSINE", "similarity", ""),
        ("qdrant, REST", "cosine", "similarity"),
        ("qdrant", "ip", "similarity"),
        ("lance", "euclidean", "l2"),
        ("sqlite3", "l2", ""),
    ]:
        doc, *_ = CASES[form]
        flt = rf.Filter("adaptive-gap")
        warnings = " ".join(flt(QUERY, [doc], metric=metric).warnings)
        assert (f": pass metric='{right}'." in warnings) is bool(right)
        # The caller may have squared them.
        assert flt(QUERY, [doc], [0.5], metric=metric).warnings == ()


def test_what_a_table_lacks_beside_a_hit_does_not_unhide_it() -> None:
    doc = {"payload": {"text": "t", "clearance": 3}, "clearance": np.nan}
    assert len(rf.Filter("full")(QUERY, [doc], user=rf.User(2))) == 0


def test_a_hit_without_a_text_is_refused() -> None:
    for doc in ({"id": 1, "payload": {"n": 1}}, SimpleNamespace(id=1, payload={"n": 1})):
        with pytest.raises(rf.RagfilterError, match="text is missing"):
            rf.Filter("full")(QUERY, [doc] * 2, metric="rank")
    with pytest.raises(rf.RagfilterError, match="unknown type SimpleNamespace"):
        rf.Filter("full")(QUERY, [SimpleNamespace(id=1, metadata=object())])
