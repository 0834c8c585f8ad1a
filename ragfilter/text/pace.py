"""Estimates the time left, from the speed so far."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

FIRST_S = 2.0
"""Nothing is foretold before so long."""


class Pace:
    """Watches one run of work. A total that changes begins a new one."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._total = -1
        self._began = (0, 0.0)

    def left(self, done: int, total: int) -> float | None:
        """Seconds that the rest will take; None while that cannot be told yet."""
        now = self._clock()
        if total != self._total or done < self._began[0]:
            self._total, self._began = total, (done, now)
        steps, seconds = done - self._began[0], now - self._began[1]
        if steps < 1 or seconds < FIRST_S:
            return None
        return seconds * max(total - done, 0) / steps


def in_words(seconds: float | None) -> str:
    """``about 40 s left``, ``about 3 min left``; empty if it is not known."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"about {max(round(seconds), 1)} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"
