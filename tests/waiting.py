"""How long tests wait, on the assumption that the machine is busy.

A timeout that a test must reach is short, and its peer is silent by construction: `SILENT_S` is longer than any such
timeout, so a call that waits for the peer ends differently from one that gives up. Everything else waits for its
condition, with a timeout that only detects hangs. So a busy machine makes tests slow, but not red. No test asserts that
work is fast; benchmarks do. If hostile input could make work endless, or a deadline could be missed, the CPU time of
the waiting thread is limited.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, thread_time

SILENT_S = 120.0
"""How long a silent peer stays silent."""
PATIENT_S = 60.0
PATIENT_MS = int(PATIENT_S * 1000)
"""The deadline of a call that must succeed."""
PROCESS_S = 600.0
"""Timeout for a process that a test starts."""
OWN_S = 1.0
"""CPU time allowed for giving up on a call: it may end one second after the deadline, and only the
thread's own work could make it later on an idle machine."""
WORK_S = 3.0
"""CPU time allowed for work of less than a second; superlinear work takes longer."""


@contextmanager
def ends_after(timeout_s: float) -> Iterator[None]:
    """The block must give up at its deadline: not earlier, and with little work of its own."""
    began = monotonic()
    with ends_soon(OWN_S):
        yield
    assert timeout_s <= monotonic() - began


@contextmanager
def ends_soon(most_s: float = WORK_S) -> Iterator[None]:
    """The block must take little CPU time, which does not depend on the machine's load."""
    began = thread_time()
    yield
    # Measuring coverage traces every line, which takes several times as long.
    assert thread_time() - began < most_s * (1 if sys.gettrace() is None else 10)
