"""The service's counters for Prometheus: answers, and the decisions about each question as its user sees them."""

from __future__ import annotations

from collections import Counter as CountOf
from collections.abc import Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

from ragfilter.library.result import Result
from ragfilter.results.rows import ChunkRow

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
COUNTED = ("/v1/search", "/v1/filter", "/v1/rerank", "/v2/rerank", "/retrieval", "/mcp")
"""The addresses that are counted by name."""


class Metrics:
    """The counters of one service."""

    content_type = CONTENT_TYPE

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        counter = partial(Counter, namespace="ragfilter", registry=self._registry)
        self._questions = counter("questions", "Questions that were answered.", ["path"])
        self._kept = counter("kept", "Chunks that were kept.")
        self._dropped = counter("dropped", "Chunks that a layer dropped.", ["layer"])
        self._fallbacks = counter("fallbacks", "Questions for which a layer had no model, or it failed.", ["layer"])
        self._answers = counter("answers", "Answers by their HTTP status.", ["path", "status"])
        seconds = partial(Histogram, namespace="ragfilter", registry=self._registry, buckets=SECONDS)
        self._seconds = seconds("seconds", "Seconds that an answer took.", ["path"])

    def count_answer(self, path: str, status: int) -> None:
        """Count an answer. Addresses that do not exist share one counter."""
        self._answers.labels(path if path in COUNTED else "other", str(status)).inc()

    def count_question(self, path: str, result: Result, rows: Sequence[ChunkRow], seconds: float) -> None:
        """Count a question by the rows of its result."""
        self._questions.labels(path).inc()
        self._seconds.labels(path).observe(seconds)
        self._kept.inc(len(result.kept))
        for layer, dropped in CountOf(row.layer for row in rows if not row.kept).items():
            self._dropped.labels(layer).inc(dropped)
        for layer in result.fallbacks:
            self._fallbacks.labels(layer).inc()

    def text(self) -> bytes:
        """All counters in Prometheus's text format."""
        return generate_latest(self._registry)
