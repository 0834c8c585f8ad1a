from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from waiting import SILENT_S

from ragfilter.basics.threads import given_up, within


@pytest.fixture
def hang() -> Iterator[Callable[[], int]]:
    """A call that does not return before the test is over."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def work() -> int:
        threads.append(threading.current_thread())
        over.wait(SILENT_S)
        return 1

    yield work
    over.set()
    for thread in threads:
        thread.join()
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


@pytest.mark.parametrize(
    ("sleeps", "waits", "finished"), [(0.5, SILENT_S, True), (SILENT_S, 0.2, False)], ids=["short", "endless"]
)
def test_the_end_of_a_process_waits_for_what_was_given_up_but_not_long(
    sleeps: float, waits: float, finished: bool
) -> None:
    code = f"""
import contextlib, time
from ragfilter.basics import threads

def work():
    time.sleep({sleeps})
    print("finished", flush=True)

threads.EXIT_WAIT_S = {waits}
with contextlib.suppress(TimeoutError):
    threads.within(0.1, work)
"""
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    assert ("finished" in made.stdout) is finished
