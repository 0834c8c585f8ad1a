"""Background jobs. A job continues while sliders move, and any later run can take its result.

Streamlit can stop a run only when the run draws something. So everything that may hang is waited
for here in short intervals.
"""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, TypeVar

from ragfilter.errors import ChatError, RagfilterError
from ragfilter.protocols import ChatModel, Delta, Message

V = TypeVar("V")


class Stopped(RagfilterError):
    """The job was asked to stop."""


@dataclass(slots=True, eq=False)
class Job(Generic[V]):
    """Work in its own thread. Setting `stop` asks it to end, which may take a while."""

    future: Future[V] = field(default_factory=Future)
    stop: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=monotonic)
    at: tuple[int, int, str] = (0, 0, "")
    """The progress reported by the work: done, total, and what it is doing."""

    @property
    def done(self) -> bool:
        return self.future.done()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.began

    @property
    def failure(self) -> str:
        """The error message; empty while it is running or if it succeeded."""
        error = self.future.exception() if self.done else None
        if error is None:
            return ""
        return str(error) if isinstance(error, RagfilterError) else "An unexpected error."

    def tell(self, done: int, total: int, what: str = "") -> bool:
        """Called by the work to report progress. Returns whether it should continue."""
        self.at = (done, total, what)
        return not self.stop.is_set()

    def step(self, done: int, total: int, what: str = "") -> None:
        """Like `tell`, but raises Stopped if the work should end."""
        if not self.tell(done, total, what):
            raise Stopped("It was stopped.")

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`, and return whether the job is done."""
        return bool(wait((self.future,), seconds).done)

    def value(self) -> V:
        """Wait for the result. Raises what the work raised."""
        return self.future.result()


def start(work: Callable[[Job[V]], V]) -> Job[V]:
    """Run `work` in a thread. It is passed its job, to report progress and to see when to stop."""
    job: Job[V] = Job()

    def run() -> None:
        try:
            value = work(job)
        except BaseException as error:
            job.future.set_exception(error)
        else:
            job.future.set_result(value)

    # A daemon, so that stopping the server does not wait for an endpoint that hangs.
    threading.Thread(target=run, name="ragfilter-job", daemon=True).start()
    return job


class Shared:
    """Jobs that runs share by key. At most `most` of them work at once. A job is stopped once no
    run waits for it: Streamlit ends the runs of a session that is gone, and those that a later one
    supersedes."""

    def __init__(self, most: int) -> None:
        self._turns = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._jobs: dict[Hashable, Job[None]] = {}
        self._waiting: Counter[Job[None]] = Counter()

    @contextmanager
    def joined(self, key: Hashable, work: Callable[[Job[None]], None]) -> Iterator[Job[None]]:
        """The job for `key`, which does `work` and is begun if there is none."""

        def in_turn(job: Job[None]) -> None:
            with self._turns:
                job.step(0, 0)
                work(job)

        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                job = self._jobs[key] = start(in_turn)
            self._waiting[job] += 1
        try:
            yield job
        finally:
            with self._lock:
                self._waiting[job] -= 1
                if not self._waiting[job]:
                    job.stop.set()
                    del self._waiting[job], self._jobs[key]


def pieces(stream: Iterator[str], tick_s: float) -> Iterator[str]:
    """Yield what `stream` yields, read in a thread, and an empty string for every `tick_s` seconds
    without a piece, so that the run can be stopped while an endpoint hangs. Pieces that arrive
    faster are joined, since each redraws all before it. Raises what `stream` raises."""
    came: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read(_: Job[None]) -> None:
        try:
            for piece in stream:
                came.put(piece)
        finally:
            came.put(None)

    job = start(read)
    last = 0.0
    while True:
        try:
            got = [came.get(timeout=tick_s)]
        except queue.Empty:
            yield ""
            continue
        while got[-1] is not None:
            try:
                got.append(came.get(timeout=max(0.0, last + tick_s - monotonic())))
            except queue.Empty:
                break
        last = monotonic()
        yield "".join(piece for piece in got if piece is not None)
        if got[-1] is None:
            job.value()
            return


@dataclass(frozen=True, slots=True)
class Stoppable:
    """`inner`, until `stop` is set: then it stops reading and closes the connection."""

    inner: ChatModel
    stop: threading.Event

    @property
    def name(self) -> str:
        return self.inner.name

    def stream(
        self,
        messages: Sequence[Message],
        *,
        timeout_s: float,
        schema: Mapping[str, object] | None = None,
    ) -> Iterator[Delta]:
        """Yield the answer in pieces. Raises ChatError as `inner` does, and if it was stopped."""
        for delta in self.inner.stream(messages, timeout_s=timeout_s, schema=schema):
            if self.stop.is_set():
                raise ChatError("It was stopped.", kind="interrupted")
            yield delta
        if self.stop.is_set():
            raise ChatError("It was stopped.", kind="interrupted")
