"""What threads share. Gives up on a call that takes too long and has no deadline of its own, and
stops work that nobody waits for any more."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Generic, TypeVar

from cachetools import LRUCache, cached

T = TypeVar("T")

GIVEN_UP = "given up"
EXIT_WAIT_S = 5.0
"""How long the end of the process waits for calls that were given up."""
POLL_S = 0.1
"""How often work that waits looks whether it is to stop."""
_is_over: ContextVar[Callable[[], bool] | None] = ContextVar("is_over", default=None)


class Abandoned(BaseException):
    """Nobody waits for this work any more. No `except Exception` takes it for a failure."""


@contextmanager
def stopping(is_over: Callable[[], bool]) -> Iterator[None]:
    """The work of this block stops at its next `check_stopped` once `is_over()` is true."""
    token = _is_over.set(is_over)
    try:
        yield
    finally:
        _is_over.reset(token)


def check_stopped() -> None:
    """Raises Abandoned if nobody waits for this work any more."""
    is_over = _is_over.get()
    if is_over is not None and is_over():
        raise Abandoned


def patience(seconds: float) -> float:
    """How long to wait at once for something that may take `seconds`, before `check_stopped`."""
    return seconds if _is_over.get() is None else min(seconds, POLL_S)


def within(seconds: float, work: Callable[[], T]) -> T:
    """`work()`, run in its own thread; raises what it raises, or TimeoutError.

    A call that was given up runs on in the background; it cannot be stopped. See `given_up`. Raises
    Abandoned if nobody waits for the calling work any more.
    """
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
        # Ctrl+C ends the waiting, too.
        if not future.done():
            thread.name = GIVEN_UP
            # Once, however many are given up.
            atexit.unregister(_wait)
            atexit.register(_wait)
    if not future.done():
        raise TimeoutError(f"no answer within {seconds:g} s")
    return future.result()


def given_up() -> bool:
    """Whether a call that was given up still runs. One that comes back from torch while the
    interpreter ends aborts the process: its end waits a while, and `os._exit` does not have to."""
    return bool(_left())


def _left() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == GIVEN_UP]


def _wait() -> None:
    until = monotonic() + EXIT_WAIT_S
    for thread in _left():
        thread.join(max(0.0, until - monotonic()))


V = TypeVar("V")


class Shelf(Generic[V]):
    """At most `size` values by key. Hold `lock` over several steps that belong together."""

    def __init__(self, size: int) -> None:
        self._values: LRUCache[Hashable, V] = LRUCache(size)
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> V | None:
        """The value for `key`, None if there is none (any more)."""
        with self.lock:
            return self._values.get(key)

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value for `key`, made and stored if there is none."""
        return cached(self._values, key=lambda: key, lock=self.lock)(make)()

    def put(self, key: Hashable, value: V) -> V:
        """Store and return `value`."""
        with self.lock:
            self._values[key] = value
        return value
