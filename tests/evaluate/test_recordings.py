"""Questions from traces: what is read from spans, and searches over recorded hits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from stores import OneVector

import ragfilter as rf
from ragfilter.engine.gather import Backends, gather
from ragfilter.errors import InputError
from ragfilter.evaluate.query_files import RecordedDocument, matched, read_traces
from ragfilter.library import result as results
from ragfilter.model import User
from ragfilter.settings.schema import Settings
from ragfilter.stores.base import Subset
from ragfilter.testing import CHUNKS, QUERY, VECTORS, MemoryCollection

A, B = RecordedDocument("a", "Text a"), RecordedDocument("", "Text b")
DOCUMENTS = [
    {"document.id": "a", "document.score": 0.8, "document.content": "Text a"},
    {"document.content": "Text b", "document.metadata": {"page": 3}},
]
FLAT = {
    "retrieval.documents.1.document.content": "Text b",
    "retrieval.documents.0.document.id": "a",
    "retrieval.documents.0.document.content": "Text a",
}


def otlp(**attributes: Any) -> dict[str, Any]:
    pairs = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
    span = {"name": "retrieve", "attributes": pairs}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "other"}, span]}]}]}


def test_a_question_is_read_with_what_was_retrieved(tmp_path: Path) -> None:
    for line in [
        otlp(**{"input.value": "Why?"}, **FLAT),
        otlp(**{"input.value": '{"query": " Why?"}'}, **FLAT),
        # A span of Phoenix, a row of its data frame, and one of its REST interface.
        {"span_kind": "RETRIEVER", "attributes": {"input.value": "Why?", "retrieval.documents": DOCUMENTS}},
        {"context.span_id": "1", "attributes.input.value": "Why?", "attributes.retrieval.documents": DOCUMENTS},
        {
            "attributes": {
                "input": {"value": "Why?"},
                "retrieval": {
                    "documents": [{"document": {"id": "a", "content": "Text a"}}, {"document": {"content": "Text b"}}]
                },
            }
        },
        {"attributes": {"input.value": "Why?", **FLAT}},
    ]:
        path = tmp_path / "traces.jsonl"
        path.write_text(f"{json.dumps({'attributes': {'input.value': 'no documents'}})}\n\n{json.dumps(line)}\n")
        assert read_traces(path) == {"Why?": [A, B]}, line


def test_our_own_spans_are_read_back(tmp_path: Path) -> None:
    provider, spans = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    rf.trace(provider, texts=True)
    rf.Filter("unfiltered")("Why?", [{"id": "a", "text": "Text a"}], [0.5], metric="l2")
    results.watch(None)
    path = tmp_path / "traces.jsonl"
    path.write_text(json.dumps(MessageToDict(encode_spans(spans.get_finished_spans()))))
    assert read_traces(path) == {"Why?": [A]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}\n", "no span with a question"),
        ("nonsense\n", "line 1: this is not valid JSON"),
        ('{"resourceSpans": [{"spans": []}]}\n', "line 1: this is not an OTLP message"),
    ],
)
def test_a_file_without_recorded_questions_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as error:
        read_traces(path)
    assert error.value.remedy


def test_chunks_are_known_by_their_id_or_text() -> None:
    documents = [A, B, RecordedDocument("x", "Text a"), RecordedDocument("y", "gone")]
    assert matched(documents, {"Text a": "a", "Text b": "b"}) == ["a", "b"]


def test_only_what_was_recorded_is_searched() -> None:
    for user, seen in [(User(), ["c00"]), (User(1), ["c00", "c04"])]:
        part = Subset(MemoryCollection(CHUNKS, VECTORS), ["c04", "c00", "c16", "nobody"])
        pool = gather("Why?", Settings(), Backends(part, OneVector({}, QUERY)), user)
        assert {hit.id for hit in pool.hits if user.sees(hit.chunk)} == set(seen)
        assert pool.exhaustive, user
