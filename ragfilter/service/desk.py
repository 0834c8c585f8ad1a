"""Carries out what requests ask for, beside the event loop: a bounded number of threads, a bounded
queue, a deadline, and an end to what nobody waits for any more. A question is carried out as one
caller: the workspace is searched, hits are filtered, documents ranked, and what was decided is
counted for Prometheus, as its users see it."""

from __future__ import annotations

import asyncio
from collections import Counter as CountOf
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from threading import Event
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from starlette.requests import Request

from ragfilter import protocols, report
from ragfilter.basics.threads import Abandoned, stopping
from ragfilter.errors import ModelError
from ragfilter.library.filter import Filter
from ragfilter.library.result import Result
from ragfilter.library.workspace import OpenWorkspace
from ragfilter.model import Chunk, User
from ragfilter.protocols import Reranker
from ragfilter.report import ChunkRow
from ragfilter.service.bodies import fallbacks
from ragfilter.service.gate import GONE, Caller, Refused
from ragfilter.settings.schema import Settings

T = TypeVar("T")

WAITING = 200
"""How many requests may wait for a thread."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


COUNTERS = {
    "questions": ("Questions that were answered.", ["path"]),
    "kept": ("Chunks that were kept.", []),
    "dropped": ("Chunks that a layer dropped.", ["layer"]),
    "fallbacks": ("Questions for which a layer lacked a model, or its model failed.", ["layer"]),
    "answers": ("Answers by their HTTP status.", ["path", "status"]),
}


class Meters:
    """The counters of one service."""

    content_type = CONTENT_TYPE

    def __init__(self, paths: Sequence[str]) -> None:
        """`paths` are the addresses that are counted by name."""
        self._paths = frozenset(paths)
        self._registry = registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"ragfilter_{name}", about, labels, registry=registry)
            for name, (about, labels) in COUNTERS.items()
        }
        self._seconds = Histogram(
            "ragfilter_seconds", "Seconds that an answer took.", ["path"],
            buckets=SECONDS, registry=registry,
        )  # fmt: skip

    def answered(self, path: str, status: int) -> None:
        """Count an answer. Addresses that do not exist are counted as one."""
        known = path if path in self._paths else "other"
        self._counters["answers"].labels(known, str(status)).inc()

    def decided(self, path: str, result: Result, rows: Sequence[ChunkRow], seconds: float) -> None:
        """Count a question by the rows of its result."""
        self._counters["questions"].labels(path).inc()
        self._seconds.labels(path).observe(seconds)
        self._counters["kept"].inc(len(result.kept))
        for layer, dropped in CountOf(row.layer for row in rows if not row.kept).items():
            self._counters["dropped"].labels(layer).inc(dropped)
        for layer in fallbacks(result):
            self._counters["fallbacks"].labels(layer).inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self._registry)


Decided = tuple[Result, tuple[ChunkRow, ...]]


@dataclass(frozen=True, slots=True)
class CallersDesk:
    """A caller's way to the open workspace. What is answered at `path` is counted in `meters`."""

    bench: OpenWorkspace
    meters: Meters
    caller: Caller
    path: str

    def __getitem__(self, name: str) -> AgentsCollection:
        return AgentsCollection(self, name)

    def collection(self, name: str) -> protocols.Collection:
        """The collection called `name`. Raises Refused, StoreError."""
        self.caller.check(name)
        return self.bench.collection(name)

    def search(self, question: str, collection: str, settings: Settings, user: User) -> Decided:
        """Search a collection. Raises Refused, and what `OpenCollection.search` raises."""
        self.caller.check(collection)
        search = self.bench[collection].search
        return self._counted(lambda: search(question, settings, user=user))

    def filter(
        self,
        question: str,
        hits: Sequence[Any],
        settings: Settings,
        user: User,
        *,
        metric: str | Mapping[str, str] | None,
        scores: Sequence[float] | None = None,
    ) -> Decided:
        """Filter these hits, with the models of the workspace. Raises as `Filter` does."""
        judge = self.bench.chat if settings.judge.enabled else None
        flt = Filter(settings, reranker=self._reranker(settings), judge=judge)
        return self._counted(lambda: flt(question, hits, scores, metric=metric, user=user))

    def rank(
        self, question: str, hits: Sequence[dict[str, Any]], settings: Settings, user: User
    ) -> Decided:
        """Filter these hits by their distances in the workspace's embedding model."""
        # As they are embedded when they are indexed.
        passages = [Chunk("", hit["text"], hit["title"]).passage for hit in hits]
        vectors = self.bench.embedder.embed([question, *passages])
        scores = [float(1 - score) for score in np.asarray(vectors[1:] @ vectors[0])]
        return self.filter(question, hits, settings, user, metric="cosine", scores=scores)

    def _reranker(self, settings: Settings) -> Reranker | None:
        quality = settings.quality
        if not quality.enabled or quality.reranker == "none":
            return None
        try:
            return self.bench.reranker(quality)
        except ModelError:
            return None  # The layer falls back, and the answer says so.

    def _counted(self, ask: Callable[[], Result]) -> Decided:
        started = perf_counter()
        result = ask()
        rows = report.rows(result)
        self.meters.decided(self.path, result, rows, perf_counter() - started)
        return result, rows


@dataclass(frozen=True, slots=True)
class AgentsCollection:
    """A collection that an agent searches."""

    desk: CallersDesk
    name: str

    def search(self, query: str, settings: Settings, *, user: User) -> Result:
        """As `OpenCollection.search`."""
        return self.desk.search(query, self.name, settings, user)[0]


class Work:
    """`threads` requests are carried out at a time, each within `timeout_s`."""

    def __init__(self, threads: int, timeout_s: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ragfilter-service")
        self._room = threads + WAITING
        self._timeout_s = timeout_s
        self._closing = Event()
        self._open: set[Future[Any]] = set()

    async def answer(self, request: Request, work: Callable[[], T]) -> T:
        """`work()`, as long as the client of `request` waits. Raises what it raises, and
        Refused."""
        made = asyncio.ensure_future(self.call(work))
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait((made, gone), return_when=asyncio.FIRST_COMPLETED)
            if not made.done():
                raise Refused(GONE, "The client has gone away.")
            return made.result()
        finally:
            made.cancel()
            gone.cancel()

    async def call(self, work: Callable[[], T]) -> T:
        """`work()` in a thread. Raises what it raises, and Refused if too many others wait or it
        takes too long. If the caller is cancelled, so is the work."""
        if len(self._open) >= self._room:
            raise Refused(429, "Too many questions wait.", remedy="Try again later.")
        over = Event()
        context = copy_context()

        def run() -> T:
            with stopping(lambda: over.is_set() or self._closing.is_set()):
                return work()

        future: Future[T] = self._pool.submit(context.run, run)
        # Counted until it ends, and not only until nobody waits for it.
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Refused(
                504,
                f"The answer took more than {self._timeout_s:g} s.",
                remedy="Ask for less, or choose a profile without an LLM.",
            ) from None
        except Abandoned:
            raise Refused(503, "The service is being stopped.", remedy="Try again.") from None
        finally:
            over.set()
            future.cancel()

    def close(self) -> None:
        """Stop all work, and wait until it has stopped."""
        self._closing.set()
        self._pool.shutdown(cancel_futures=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
