"""A background job: it continues while sliders move, and any later run takes its value.

Streamlit can stop a run only where the run draws something. So everything that may hang is awaited
here in short turns.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, TypeVar

from ragfilter.errors import ChatError, RagfilterError
from ragfilter.protocols import ChatModel, Delta, Message

V = TypeVar("V")


class Stopped(RagfilterError):
    """The job was asked to stop."""


@dataclass(slots=True)
class Job(Generic[V]):
    """One piece of work in its own thread. `stop` asks it to end, which may take a while."""

    future: Future[V] = field(default_factory=Future)
    stop: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=monotonic)
    at: tuple[int, int, str] = (0, 0, "")
    """How far the work is, as it tells: done and all, and what it is doing."""

    @property
    def done(self) -> bool:
        return self.future.done()

    @property
    def seconds(self) -> float:
        """How long it has been under way."""
        return monotonic() - self.began

    @property
    def failure(self) -> str:
        """What it failed with, in words; empty while it is under way, and where it did not fail."""
        error = self.future.exception() if self.done else None
        if error is None:
            return ""
        return str(error) if isinstance(error, RagfilterError) else "An unexpected error."

    def tell(self, done: int, total: int, what: str = "") -> bool:
        """For the work: say how far it is; whether it should go on."""
        self.at = (done, total, what)
        return not self.stop.is_set()

    def step(self, done: int, total: int, what: str = "") -> None:
        """For the work: the same, but it ends here where it was asked to stop. Raises Stopped."""
        if not self.tell(done, total, what):
            raise Stopped("It was stopped.")

    def wait(self, seconds: float) -> bool:
        """Whether it is done, after at most so long."""
        return bool(wait((self.future,), seconds).done)

    def value(self) -> V:
        """What it came to; waits for it. Raises what the work raised."""
        return self.future.result()


def start(work: Callable[[Job[V]], V]) -> Job[V]:
    """Begin `work` in a thread; it is handed its job, to tell how far it is and when to stop."""
    job: Job[V] = Job()

    def run() -> None:
        try:
            value = work(job)
        except BaseException as error:
            job.future.set_exception(error)
        else:
            job.future.set_result(value)

    # A daemon: a server that is stopped does not wait for an endpoint that hangs.
    threading.Thread(target=run, name="ragfilter-job", daemon=True).start()
    return job


def pieces(source: Iterator[str], tick_s: float) -> Iterator[str]:
    """What `source` yields, read in a thread; every `tick_s` without a piece an empty one, so that
    whoever draws them may be stopped while an endpoint hangs. Pieces that come closer together are
    one, since each is drawn with all before it. Raises what `source` raises."""
    came: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read(_: Job[None]) -> None:
        try:
            for piece in source:
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
    """`inner`, whose answer is no longer read once `stop` is set; the connection is then closed."""

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
        """The answer in pieces. Raises ChatError as `inner` does, and where it was stopped."""
        for delta in self.inner.stream(messages, timeout_s=timeout_s, schema=schema):
            if self.stop.is_set():
                raise ChatError("It was stopped.", kind="interrupted")
            yield delta
        if self.stop.is_set():
            raise ChatError("It was stopped.", kind="interrupted")
