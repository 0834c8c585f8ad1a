"""Runs take turns, and no run waits for one that is itself waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from waiting import PATIENT_S

from ragfilter.ui import jobs
from ragfilter.ui.jobs import Job


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[None]]]:
    """Starts functions, each in a thread of its own."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


def test_one_turn_follows_the_other(beside: Callable[..., Future[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "LONGEST_S", PATIENT_S)
    at_once, most = 0, 0
    begun = threading.Barrier(8)

    def run() -> None:
        nonlocal at_once, most
        begun.wait(PATIENT_S)
        for _ in range(50):
            with jobs.run_lock():
                at_once += 1
                most = max(most, at_once)
                at_once -= 1

    for future in [beside(run) for _ in range(8)]:
        future.result(PATIENT_S)
    assert most == 1


def test_a_run_that_waits_for_a_job_lets_others_go_first(
    beside: Callable[..., Future[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LONGEST_S", PATIENT_S)
    job: Job[str] = Job()

    def other() -> None:
        with jobs.run_lock():
            job.run(lambda _: "done")

    with jobs.run_lock():
        future = beside(other)
        assert job.wait(PATIENT_S)
    future.result(PATIENT_S)


def test_a_run_that_hangs_holds_nobody_up_for_long(
    beside: Callable[..., Future[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LONGEST_S", 0.01)

    def other() -> None:
        with jobs.run_lock():
            pass

    with jobs.run_lock():
        beside(other).result(PATIENT_S)
    # The turn was given back once, by the run that had it.
    assert jobs._run_lock.acquire(blocking=False)
    assert not jobs._run_lock.acquire(blocking=False)
    jobs._run_lock.release()
