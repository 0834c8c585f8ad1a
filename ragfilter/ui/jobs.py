"""Background jobs, how a page shows them, and the lock that lets one run of a page work at a time.

A job continues while sliders move, and any later run can take its result: using the page ends the waiting, not the job.
Streamlit can stop a run only when the run draws something, so a run waits in short intervals for anything that may
hang. Python computes for one run at a time, and competing runs get less done than runs that take turns. So they
take turns, and a waiting run lets others go first."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.basics.threads import Pace
from ragfilter.errors import ChatError, RagfilterError
from ragfilter.protocols import ChatModel, Delta, Message
from ragfilter.text.numbers import time_left
from ragfilter.ui.look import elements, prose

log = logging.getLogger(__name__)

V = TypeVar("V")
Work = Callable[["Job[V]"], V]
"""The work of a job, which gets its job to report progress and to see when to stop."""
TICK_S = 0.15
"""Seconds between the points at which Streamlit can stop a waiting run."""
PROGRESS_TICK_S = 0.3
"""The same for a run that shows the progress of a job."""
JOB = "ragfilter-job"
"""The name of a job's thread."""
MAX_JOBS = 32
"""How many finished jobs are remembered. Jobs in progress always are."""
LONGEST_S = 1.0
"""How long a run waits for the lock. The run that has it may be waiting for a hanging server."""

_run_lock = threading.Semaphore(1)
_mine = threading.local()


@contextmanager
def run_lock() -> Iterator[None]:
    """Work as the only run of a page. Begins when no other run works, or after LONGEST_S."""
    _take()
    try:
        yield
    finally:
        _release()


def _take() -> None:
    _mine.locked = _run_lock.acquire(timeout=LONGEST_S)


def _release() -> bool:
    """Release the lock, if this thread has it. Returns whether it had."""
    had = getattr(_mine, "locked", False)
    _mine.locked = False
    if had:
        _run_lock.release()
    return had


class Stopped(RagfilterError):
    """The job was asked to stop."""


@dataclass(slots=True, eq=False)
class Job(Generic[V]):
    """Work in its own thread for `owner`: a user, a session, or None if all who wait for it share it. Setting `stop`
    asks it to end, which may take a while."""

    owner: Hashable = None
    future: Future[V] = field(default_factory=Future)
    stop: threading.Event = field(default_factory=threading.Event)
    began: float = field(default_factory=monotonic)
    progress: tuple[int, int, str] = (0, 0, "")
    """The progress that the work reported: done, total, and the current activity."""

    @property
    def done(self) -> bool:
        return self.future.done()

    @property
    def failure(self) -> str:
        """The error message; empty while it is running or if it succeeded."""
        error = self.future.exception() if self.done else None
        if error is None:
            return ""
        return str(error) if isinstance(error, RagfilterError) else "An unexpected error."

    def tell(self, done: int, total: int, what: str = "") -> bool:
        """Called by the work to report progress. Returns whether it should continue."""
        self.progress = (done, total, what)
        return not self.stop.is_set()

    def step(self, done: int, total: int, what: str = "") -> None:
        """Like `tell`, but raises Stopped if the work should end."""
        if not self.tell(done, total, what):
            raise Stopped("It was stopped.")

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`, while other runs work. Returns whether the job is done."""
        had_lock = _release()
        try:
            return bool(wait((self.future,), seconds).done)
        finally:
            if had_lock:
                _take()

    def wait_interruptibly(self) -> None:
        """Wait for the end, while Streamlit lets this run continue."""
        if self.wait(TICK_S):
            return
        tick = st.empty()
        while not self.wait(TICK_S):
            # Streamlit ends the run here if Stop is pressed, a widget changed or the browser left.
            tick.empty()

    def value(self) -> V:
        """Wait for the result. Raises what the work raised."""
        return self.future.result()

    def run(self, work: Work[V]) -> None:
        """Do the work. Called once, in the job's thread."""
        try:
            value = work(self)
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(value)


class Jobs:
    """The jobs of the server by key, shared by all sessions. At most `max_parallel`
    `joined` jobs work at the same time; by default, one per core."""

    def __init__(self, max_parallel: int | None = None) -> None:
        self._slots = threading.BoundedSemaphore(max_parallel or os.cpu_count() or 1)
        self._lock = threading.RLock()
        self._jobs: dict[Hashable, Job[Any]] = {}
        self._waiting: Counter[Hashable] = Counter()

    def find(self, key: Hashable) -> Job[Any] | None:
        """The last job for `key`; None if there was none, or too long ago."""
        return self._jobs.get(key)

    def start(self, owner: Hashable, key: Hashable, work: Work[V], *, again: bool = False) -> Job[V]:
        """The job for `key`, which does `work` for `owner`. Starts it if there is none or, with
        `again`, if the last one has ended."""
        with self._lock:
            job = self._jobs.pop(key, None)
            if job is None or (again and job.done):
                job = Job(owner)
                # A daemon, so that stopping the server does not wait for a hanging endpoint.
                threading.Thread(target=job.run, args=(work,), name=JOB, daemon=True).start()
            self._jobs[key] = job
            ended = [each for each, other in self._jobs.items() if other.done]
            for each in ended[: max(0, len(self._jobs) - MAX_JOBS)]:
                del self._jobs[each]
            return job

    def stop(self, key: Hashable) -> None:
        """Stop the job for `key`, if there is one, and forget it."""
        with self._lock:
            job = self._jobs.pop(key, None)
        if job is not None:
            job.stop.set()

    @contextmanager
    def joined(self, key: Hashable, work: Work[V]) -> Iterator[Job[V]]:
        """The job for `key` while this run waits for it. It stops once no run waits for it, because
        Streamlit ends runs whose session is gone or which a later run supersedes."""

        def in_slot(job: Job[V]) -> V:
            with self._slots:
                job.step(0, 0)
                return work(job)

        with self._lock:
            self._waiting[key] += 1
            job = self.start(None, key, in_slot)
        try:
            yield job
        finally:
            with self._lock:
                self._waiting[key] -= 1
                if not self._waiting[key]:
                    del self._waiting[key]
                    self.stop(key)


@dataclass(frozen=True, slots=True)
class Stoppable:
    """`inner`, until `stop` is set: then it stops reading and closes the connection."""

    inner: ChatModel
    stop: threading.Event

    @property
    def name(self) -> str:
        return self.inner.name

    def stream(
        self, messages: Sequence[Message], *, timeout_s: float, schema: Mapping[str, object] | None = None
    ) -> Iterator[Delta]:
        """Yield the answer in pieces. Raises ChatError as `inner` does, and if it was stopped."""
        for delta in self.inner.stream(messages, timeout_s=timeout_s, schema=schema):
            if self.stop.is_set():
                raise ChatError("It was stopped.", kind="interrupted")
            yield delta
        if self.stop.is_set():
            raise ChatError("It was stopped.", kind="interrupted")


def draw_progress(key: str, share: float, line: str, stop: Callable[[], object], about: str) -> DeltaGenerator:
    """Draw a progress bar, and a button that calls `stop`, with the tooltip `about`; none if `about` is empty.
    Returns the bar."""
    with st.container(key=key, horizontal=True, vertical_alignment="center", gap="small"):
        if about:
            elements.button("Stop", f"{key}-stop", stop, icon="stop", about=about)
        return st.progress(share, text=line)


def until_done(job: Job[V], key: str, what: str, *, stop: str = "") -> None:
    """Show the progress of a job until it ends. `what` describes it if the job itself does not. `stop` is the tooltip
    of the Stop button, if there is one. A run may wait for several jobs, each with its own `key`."""
    if job.wait(PROGRESS_TICK_S):
        return
    slot, pace = st.empty(), Pace()
    with slot:
        bar = draw_progress(key, 0.0, f"{what} …", job.stop.set, stop)
    while not job.wait(PROGRESS_TICK_S):
        bar.progress(*progress_of(job, what, pace))
    slot.empty()


def progress_of(job: Job[V], what: str, pace: Pace) -> tuple[float, str]:
    """The share that is done, and a line about it. For at most one step, the line has the seconds since the start."""
    done, total, activity = job.progress
    if total < 2:
        return 0.0, f"{activity or what} … {monotonic() - job.began:.0f} s"
    left = time_left(pace.left(done, total)) if done < total else ""
    return min(done / total, 1.0), f"{activity or what}: {done:,} of {total:,}{left and ', '}{left}"


def wait_for_result(job: Job[V] | None, key: str, what: str, *, stop: str = "") -> V | None:
    """Wait for a job and return its result; None if there is no job, or if it was stopped or failed. Shows its
    error."""
    if job is None:
        return None
    until_done(job, key, what, stop=stop)
    try:
        return job.value()
    except Stopped:
        return None
    except RagfilterError:
        st.error(prose.message(job.failure))
    except Exception:
        # If the caller then forgets its job, nobody would see the error.
        log.exception("%s failed", what)
        st.error(job.failure)
    return None
