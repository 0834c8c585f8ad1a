"""The service's counters for Prometheus: answers, and the decisions about each question as its user sees them."""

from __future__ import annotations

from collections import Counter as CountOf
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

from ragfilter.library.result import Result
from ragfilter.results.rows import ChunkRow

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
COUNTERS = {
    "questions": ("Questions that were answered.", ["path"]),
    "kept": ("Chunks that were kept.", []),
    "dropped": ("Chunks that a layer dropped.", ["layer"]),
    "fallbacks": ("Questions for which a layer lacked a model, or its model failed.", ["layer"]),
    "answers": ("Answers by their HTTP status.", ["path", "status"]),
}


class Metrics:
    """The counters of one service."""

    content_type = CONTENT_TYPE

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths` are the addresses counted by name."""
        self._paths = frozenset(paths)
        self._registry = registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"ragfilter_{name}", about, labels, registry=registry)
            for name, (about, labels) in COUNTERS.items()
        }
        self._seconds = Histogram(
            "ragfilter_seconds", "Seconds that an answer took.", ["path"], buckets=SECONDS, registry=registry
        )

    def count_answer(self, path: str, status: int) -> None:
        """Count an answer. Addresses that do not exist share one counter."""
        known = path if path in self._paths else "other"
        self._counters["answers"].labels(known, str(status)).inc()

    def count_question(self, path: str, result: Result, rows: Sequence[ChunkRow], seconds: float) -> None:
        """Count a question by the rows of its result."""
        self._counters["questions"].labels(path).inc()
        self._seconds.labels(path).observe(seconds)
        self._counters["kept"].inc(len(result.kept))
        for layer, dropped in CountOf(row.layer for row in rows if not row.kept).items():
            self._counters["dropped"].labels(layer).inc(dropped)
        for layer in result.fallbacks:
            self._counters["fallbacks"].labels(layer).inc()

    def text(self) -> bytes:
        """All counters in Prometheus's text format."""
        return generate_latest(self._registry)
