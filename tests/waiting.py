"""How long tests wait. No machine that runs them is idle.

A limit that a test has to reach is short, and its peer is silent by construction: `SILENT_S` is
longer than any such limit, so a call that waited for the peer ends differently from one that was
given up. Everything else waits for its condition, with a limit that only detects that something
hangs. So a busy machine makes tests slow, but not red. No test asserts that work is fast, which is
for benchmarks. If hostile input could make work endless, or a deadline could be missed, the CPU
time of the waiting thread is limited.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, thread_time

SILENT_S = 120.0
"""How long a silent peer stays so while its test runs."""
PATIENT_S = 60.0
PATIENT_MS = int(PATIENT_S * 1000)
"""The deadline of a call that must succeed."""
PROCESS_S = 600.0
"""How long a process of our own may take."""
OWN_S = 1.0
"""CPU time of whoever gives up on a call: one second after the deadline is promised, and on an idle
machine only work of one's own is late."""
WORK_S = 3.0
"""CPU time for what takes less than one second; what is not linear takes longer."""


@contextmanager
def ends_after(timeout_s: float) -> Iterator[None]:
    """The block is given up at its deadline: not before, and with little work of its own."""
    began = monotonic()
    with ends_soon(OWN_S):
        yield
    assert timeout_s <= monotonic() - began


@contextmanager
def ends_soon(most_s: float = WORK_S) -> Iterator[None]:
    """The block takes little CPU time, which is the same on a busy machine."""
    began = thread_time()
    yield
    # Measuring coverage traces every line, which takes several times as long.
    assert thread_time() - began < most_s * (1 if sys.gettrace() is None else 10)
