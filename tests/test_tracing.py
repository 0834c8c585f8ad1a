"""`rf.trace`: spans of a user's results, with the names of OpenInference."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from openinference.semconv.trace import (
    DocumentAttributes,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragfilter as rf
from ragfilter.library import result as results
from ragfilter.library import tracing

QUERY = "Do trolls heal?"
DOCS = [
    {"id": "a", "text": "Trolls regenerate."},
    {"id": "hidden", "text": "The king is a troll.", "clearance": 3},
    {"id": "b", "text": "The weather in spring.", "query_must": {"contain": "weather"}},
    {"id": "c", "text": "Trolls fear fire."},
]


class Ranker:
    """Scores by length."""

    name = "by-length"

    def score(self, query: str, texts: list[str]) -> list[float]:
        return [len(text) / 100 for text in texts]


Spans = InMemorySpanExporter


@pytest.fixture
def provider() -> Iterator[tuple[TracerProvider, Spans]]:
    made, spans = TracerProvider(), InMemorySpanExporter()
    made.add_span_processor(SimpleSpanProcessor(spans))
    yield made, spans
    results.watch(None)
    made.shutdown()


def ask() -> rf.Result:
    quality = {"quality.enabled": True, "quality.mode": "always", "quality.reranker_threshold": 0.0}
    settings = rf.Settings().with_values({"query_must.enabled": True, **quality})
    flt = rf.Filter(settings, reranker=Ranker())
    return flt(QUERY, DOCS, [0.2, 0.21, 0.3, 0.31], metric="cosine", user=rf.User(1))


def told(spans: Spans) -> tuple[ReadableSpan, dict[str, ReadableSpan]]:
    """The span of the question, and those of the layers."""
    finished = spans.get_finished_spans()
    (question,) = (span for span in finished if span.parent is None)
    return question, {span.name: span for span in finished if span.parent is not None}


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_question_is_a_span_with_one_for_each_layer(provider: tuple[TracerProvider, Spans]) -> None:
    tracing.trace(provider[0])
    result = ask()
    question, layers = told(provider[1])
    assert list(layers) == [trace.layer for trace in result.traces if trace.enabled]
    assert all(span.parent == question.get_span_context() for span in layers.values())
    said = attributes(question)
    kept = [tuple(said[f"retrieval.documents.{i}.document.{of}"] for of in ("id", "score")) for i in range(len(result))]
    assert kept == [("a", 0.18), ("c", 0.17)]
    assert said["openinference.span.kind"] == "RETRIEVER"
    dropped = json.loads(attributes(layers["query_must"])["metadata"])["dropped"]
    assert [each["id"] for each in dropped] == ["b"]
    assert dropped[0]["reason"]
    assert attributes(layers["quality"])["openinference.span.kind"] == "RERANKER"
    for span in (question, *layers.values()):
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.start_time <= span.end_time


def test_texts_are_told_only_on_request_and_hidden_chunks_never(provider: tuple[TracerProvider, Spans]) -> None:
    for texts in [False, True]:
        tracing.trace(provider[0], texts=texts)
        ask()
        said = "".join(span.to_json() for span in provider[1].get_finished_spans())
        assert ("Trolls regenerate." in said) == texts
        assert (QUERY in said) == texts
        assert "hidden" not in said, texts
        assert "king" not in said, texts


def test_every_attribute_is_one_of_openinference(provider: tuple[TracerProvider, Spans]) -> None:
    known = {
        value
        for kind in (SpanAttributes, RerankerAttributes, DocumentAttributes)
        for name, value in vars(kind).items()
        if not name.startswith("_")
    }
    tracing.trace(provider[0], texts=True)
    ask()
    for span in provider[1].get_finished_spans():
        for name in attributes(span):
            listed = re.fullmatch(r"(.+documents)\.\d+\.(document\..+)", name)
            assert set(listed.groups() if listed else [name]) <= known
        kind = attributes(span)["openinference.span.kind"]
        assert kind in {each.value for each in OpenInferenceSpanKindValues}


def test_spans_belong_to_the_trace_of_a_request(provider: tuple[TracerProvider, Spans]) -> None:
    tracing.trace(provider[0])
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with tracing.under({"traceparent": parent}):
        ask()
    contexts = [span.get_span_context() for span in provider[1].get_finished_spans()]
    assert {f"{each.trace_id:032x}" for each in contexts if each} == {parent.split("-")[1]}


def test_without_it_nothing_of_opentelemetry_is_imported() -> None:
    code = (
        "import sys, ragfilter as rf; rf.Filter('full')('a', ['b']);"
        "print(any('opentelemetry' in name for name in sys.modules))"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "False"
