"""For threads: deadlines for calls without their own, stopping abandoned work, its pace, a cache, no collector."""

from __future__ import annotations

import atexit
import gc
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import monotonic
from typing import Generic, TypeVar

from cachetools import LRUCache, cached

T = TypeVar("T")

GIVEN_UP = "given up"
EXIT_WAIT_S = 5.0
"""How long the process waits at exit for calls that were given up."""
POLL_S = 0.1
"""How often waiting work checks whether it should stop."""
_is_over: ContextVar[Callable[[], bool] | None] = ContextVar("is_over", default=None)


class Abandoned(BaseException):
    """Nobody waits for this work any more. `except Exception` does not catch it as a failure."""


@contextmanager
def stopping(is_over: Callable[[], bool]) -> Iterator[None]:
    """Stop the work in this block at its next `check_stopped` once `is_over()` is true."""
    token = _is_over.set(is_over)
    try:
        yield
    finally:
        _is_over.reset(token)


def check_stopped() -> None:
    """Raise Abandoned if nobody waits for this work any more."""
    is_over = _is_over.get()
    if is_over is not None and is_over():
        raise Abandoned


def patience(seconds: float) -> float:
    """How long to wait for something that may take `seconds` before the next `check_stopped`."""
    return seconds if _is_over.get() is None else min(seconds, POLL_S)


def within(seconds: float, work: Callable[[], T]) -> T:
    """Run `work()` in its own thread; raises its errors, or TimeoutError after `seconds`. A call that was given up runs
    on in the background (`given_up`). Raises Abandoned if nobody waits for the calling work any more."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until = monotonic() + seconds
    try:
        while not future.done() and (left := until - monotonic()) > 0:
            wait([future], patience(left))
            check_stopped()
    finally:
        # Ctrl+C also ends the wait.
        if not future.done():
            thread.name = GIVEN_UP
            # Only once, however many calls are given up.
            atexit.unregister(_wait)
            atexit.register(_wait)
    if not future.done():
        raise TimeoutError(f"no answer within {seconds:g} s")
    return future.result()


def given_up() -> bool:
    """Whether a call that was given up is still running. A call that returns from torch during
    interpreter shutdown aborts the process, so exit waits a while; `os._exit` need not."""
    return bool(_left())


def _left() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == GIVEN_UP]


def _wait() -> None:
    until = monotonic() + EXIT_WAIT_S
    for thread in _left():
        thread.join(max(0.0, until - monotonic()))


@contextmanager
def collecting_nothing() -> Iterator[None]:
    """Pause garbage collection while millions of objects are made that all stay: it would scan them again and again."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


V = TypeVar("V")


class SharedCache(Generic[V]):
    """A cache of at most `size` values, or of that total by `weigh`. Hold `lock` during steps that belong together."""

    def __init__(self, size: int, weigh: Callable[[V], int] | None = None) -> None:
        self._values: LRUCache[Hashable, V] = LRUCache(size, weigh)
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> V | None:
        """The value for `key`; None if there is none."""
        with self.lock:
            return self._values.get(key)

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value for `key`; if there is none, make and store it."""
        return cached(self._values, key=lambda: key, lock=self.lock)(make)()

    def put(self, key: Hashable, value: V) -> V:
        """Store and return `value`. One that is larger than the whole cache is not stored."""
        with self.lock, suppress(ValueError):
            self._values[key] = value
        return value


FIRST_S = 2.0  # no estimate is shown before this time


class Pace:
    """Measures the pace of a run of work. If the total changes, a new run begins."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._total = -1
        self._began = (0, 0.0)

    def left(self, done: int, total: int) -> float | None:
        """The estimated seconds left; None while there is no estimate yet."""
        now = self._clock()
        if total != self._total or done < self._began[0]:
            self._total, self._began = total, (done, now)
        steps, seconds = done - self._began[0], now - self._began[1]
        if steps < 1 or seconds < FIRST_S:
            return None
        return seconds * max(total - done, 0) / steps
