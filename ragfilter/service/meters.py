"""What Prometheus reads of the service. Questions are counted as their users see the results."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

from ragfilter.library.result import Result
from ragfilter.report import ChunkRow
from ragfilter.service.answers import fallbacks

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Meters:
    """The counters of one service."""

    content_type = CONTENT_TYPE

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths` are the addresses that are counted by name."""
        self._paths = frozenset(paths)
        self._registry = registry = CollectorRegistry()
        self._questions = Counter(
            "ragfilter_questions", "Questions that were answered.", ["path"], registry=registry
        )
        self._kept = Counter("ragfilter_kept", "Chunks that were kept.", registry=registry)
        self._dropped = Counter(
            "ragfilter_dropped", "Chunks that a layer dropped.", ["layer"], registry=registry
        )
        self._fallbacks = Counter(
            "ragfilter_fallbacks",
            "Questions for which a layer lacked a model, or its model failed.",
            ["layer"],
            registry=registry,
        )
        self._seconds = Histogram(
            "ragfilter_seconds", "Seconds that an answer took.", ["path"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._answers = Counter(
            "ragfilter_answers", "Answers by their HTTP status.", ["path", "status"],
            registry=registry,
        )  # fmt: skip

    def answered(self, path: str, status: int) -> None:
        """Count an answer. Addresses that do not exist are counted as one."""
        known = path if path in self._paths else "other"
        self._answers.labels(known, str(status)).inc()

    def decided(self, path: str, result: Result, rows: Sequence[ChunkRow], seconds: float) -> None:
        """Count a question by the rows of its result."""
        self._questions.labels(path).inc()
        self._seconds.labels(path).observe(seconds)
        self._kept.inc(len(result.kept))
        for row in rows:
            if not row.kept:
                self._dropped.labels(row.layer).inc()
        for layer in fallbacks(result):
            self._fallbacks.labels(layer).inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)
