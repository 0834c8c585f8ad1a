"""Exports questions as OpenTelemetry spans with OpenInference attributes: a RETRIEVER span for each, with a child for
each layer that was on. Spans are made from the result as its user sees it, so they contain nothing hidden."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import time_ns
from typing import TYPE_CHECKING, Any

from ragfilter import __version__
from ragfilter.errors import extra
from ragfilter.library import result as results
from ragfilter.library.result import Result
from ragfilter.model import Hit, LayerTrace, similarity
from ragfilter.results.rows import rerank_score

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

log = logging.getLogger(__name__)

KIND = "openinference.span.kind"
MAX_DOCUMENTS = 100
"""Maximum number of documents in a span, the best ones. A pool may have hundreds."""


def trace(provider: TracerProvider | None = None, *, texts: bool = False) -> None:
    """Send a span for every further question of this process to `provider`, by default the global
    one. With `texts`, spans contain questions and chunk texts. Raises DependencyError."""
    with extra("otel"):
        from opentelemetry import trace as api

    tracer = api.get_tracer("ragfilter", __version__, provider)

    def tell(result: Result, started_ns: int) -> None:
        ended_ns = time_ns()
        with tracer.start_as_current_span(
            "ragfilter", start_time=started_ns, end_on_exit=False, attributes=dict(_question(result, texts=texts))
        ) as span:
            # The layers ran in sequence, and the last one ended with the question.
            layers = [layer for layer in result.traces if layer.enabled]
            at = ended_ns - sum(map(_ns, layers))
            for layer in layers:
                attributes = dict(_layer(result, layer, texts=texts))
                child = tracer.start_span(layer.layer, start_time=at, attributes=attributes)
                at += _ns(layer)
                child.end(at)
            span.end(ended_ns)

    results.watch(tell)


@contextmanager
def exported(*, texts: bool) -> Iterator[None]:
    """Export the spans of this block over OTLP to OTEL_EXPORTER_OTLP_ENDPOINT. Raises DependencyError."""
    with extra("otel"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if not any(os.environ.get(f"OTEL_EXPORTER_OTLP_{name}ENDPOINT") for name in ("", "TRACES_")):
        log.warning("OTEL_EXPORTER_OTLP_ENDPOINT is not set, so traces go to http://localhost:4318.")
    provider = TracerProvider(resource=Resource.create({"service.name": "ragfilter"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace(provider, texts=texts)
    try:
        yield
    finally:
        results.watch(None)
        provider.shutdown()


@contextmanager
def under(headers: Mapping[str, str]) -> Iterator[None]:
    """Add the spans of this block to the trace in a request's `headers` (traceparent)."""
    if "traceparent" not in headers or "opentelemetry" not in sys.modules:
        yield
        return
    from opentelemetry import context, propagate

    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)


def _ns(layer: LayerTrace) -> int:
    return int(layer.ms * 1e6)


def _question(result: Result, *, texts: bool) -> Iterator[tuple[str, Any]]:
    yield KIND, "RETRIEVER"
    if texts:
        yield "input.value", result.query
    yield from _documents("retrieval.documents", result, result.kept, texts=texts)
    metadata = {"collection": result.pool.collection, "status": result.status}
    yield "metadata", json.dumps(metadata | {"retrieved": result.retrieved, "kept": len(result.kept)})


def _layer(result: Result, layer: LayerTrace, *, texts: bool) -> Iterator[tuple[str, Any]]:
    hits = {hit.id: hit for hit in result.hits}
    known = [each for each in layer.decisions if each.chunk_id in hits]
    dropped = [each for each in known if each.outcome == "dropped"]
    stay = [hits[each.chunk_id] for each in known if each.outcome != "dropped"]
    if layer.reranked:
        yield KIND, "RERANKER"
        yield "reranker.model_name", result.pool.reranker
        yield "reranker.top_k", layer.n_out
        if texts:
            yield "reranker.query", result.query
        scored = [hit for hit in result.hits if hit.rerank_score is not None]
        yield from _documents("reranker.input_documents", result, scored, texts=texts)
        yield from _documents("reranker.output_documents", result, stay, texts=texts)
    else:
        yield KIND, "CHAIN"
    why = [{"id": d.chunk_id, "reason": d.reason} for d in dropped[:MAX_DOCUMENTS]]
    metadata = {"in": layer.n_in, "out": layer.n_out, "failed": layer.failed, "note": layer.note}
    yield "metadata", json.dumps(metadata | {"dropped": why})


def _documents(name: str, result: Result, hits: Sequence[Hit], *, texts: bool) -> Iterator[tuple[str, Any]]:
    for place, hit in enumerate(hits[:MAX_DOCUMENTS]):
        at = f"{name}.{place}.document"
        yield f"{at}.id", hit.id
        score = rerank_score(result, hit)
        if score is None and result.pool.space != "rank":
            score = similarity(hit.distance, result.pool.space)
        if score is not None:
            yield f"{at}.score", score
        if texts:
            yield f"{at}.content", hit.chunk.text
