"""Runs of the page take turns: Python computes for one at a time, and many that compete for it get
less done than one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Semaphore, local

LONGEST_S = 1.0
"""How long a run waits for its turn. Whoever has it may be waiting for a server that hangs."""

_turns = Semaphore(1)
_mine = local()


@contextmanager
def turn() -> Iterator[None]:
    """What is done in a turn. It begins when nobody else has one, or after LONGEST_S."""
    _take()
    try:
        yield
    finally:
        _give_up()


@contextmanager
def away() -> Iterator[None]:
    """Let others take the turn while this run waits for something."""
    had = _give_up()
    try:
        yield
    finally:
        if had:
            _take()


def _take() -> None:
    _mine.turn = _turns.acquire(timeout=LONGEST_S)


def _give_up() -> bool:
    """Whether this thread had a turn."""
    had = getattr(_mine, "turn", False)
    _mine.turn = False
    if had:
        _turns.release()
    return had
