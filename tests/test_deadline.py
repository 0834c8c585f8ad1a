from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from time import perf_counter

import pytest

from ragfilter.deadline import given_up, within


@pytest.fixture
def hang() -> Iterator[Callable[[], int]]:
    """A call that does not come back before the test is over."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def work() -> int:
        threads.append(threading.current_thread())
        over.wait(60)
        return 1

    yield work
    over.set()
    for thread in threads:
        thread.join(60)
    assert not given_up()


def test_what_comes_in_time_is_handed_on() -> None:
    assert within(60, lambda: "done") == "done"
    with pytest.raises(ZeroDivisionError):
        within(60, lambda: 1 // 0)
    assert not given_up()


def test_what_does_not_come_is_given_up(hang: Callable[[], int]) -> None:
    with pytest.raises(TimeoutError, match=r"no answer within 0.05 s"):
        within(0.05, hang)
    assert given_up()


def test_an_interrupted_call_is_given_up_too(hang: Callable[[], int]) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            within(60, hang)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert given_up()


@pytest.mark.parametrize(
    ("sleeps", "finished", "most"), [(1.5, True, 5), (60, False, 15)], ids=["short", "endless"]
)
def test_the_end_of_a_process_waits_for_what_was_given_up_but_not_long(
    sleeps: float, finished: bool, most: float
) -> None:
    code = f"""
import contextlib, time
from ragfilter.deadline import within

def work():
    time.sleep({sleeps})
    print("finished", flush=True)

with contextlib.suppress(TimeoutError):
    within(0.1, work)
"""
    started = perf_counter()
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    assert ("finished" in made.stdout) is finished
    assert perf_counter() - started < most
