"""Gives up on a call that takes too long and that has no deadline of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

GIVEN_UP = "given up"


def within(seconds: float, work: Callable[[], T]) -> T:
    """`work()`, run in a thread of its own; raises what it raises, or TimeoutError.

    A call that was given up runs on in the background; it cannot be stopped. See `given_up`.
    """
    done: list[T] = []
    failed: list[BaseException] = []
    over = threading.Event()

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            over.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        over.wait(seconds)
    finally:
        # Ctrl+C ends the waiting, too.
        if not over.is_set():
            thread.name = GIVEN_UP
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return done[0]


def given_up() -> bool:
    """Whether a call that was given up still runs. One that comes back from torch while the
    interpreter ends aborts the process, so it should then be left by `os._exit`."""
    return any(thread.name == GIVEN_UP for thread in threading.enumerate())
