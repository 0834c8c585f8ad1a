"""Gives up on a call that takes too long and has no deadline of its own."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

GIVEN_UP = "given up"
EXIT_WAIT_S = 5.0
"""How long the end of the process waits for calls that were given up."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """`work()`, run in its own thread; raises what it raises, or TimeoutError.

    A call that was given up runs on in the background; it cannot be stopped. See `given_up`.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        wait([future], seconds)
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
