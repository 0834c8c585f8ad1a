"""Background jobs: started once, shared by the waiting runs, and stopped when none waits. Runs take turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from waiting import PATIENT_S

from ragfilter.basics.threads import Pace, SharedCache
from ragfilter.errors import InputError
from ragfilter.protocols import Vectors
from ragfilter.ui import jobs as ui_jobs
from ragfilter.ui.jobs import MAX_JOBS, Job, Jobs, progress_of
from ragfilter.ui.resources import TEXTS_AT_ONCE, CachedEmbedder

Work = Callable[[Job[None]], None]


def test_sessions_that_start_the_same_at_once_begin_one_job() -> None:
    jobs, both = Jobs(), threading.Barrier(2)
    begun: list[Job[bool]] = []

    def session() -> None:
        both.wait()
        begun.append(jobs.start(None, "key", lambda job: job.stop.wait(PATIENT_S)))

    sessions = [threading.Thread(target=session) for _ in range(2)]
    for each in sessions:
        each.start()
    for each in sessions:
        each.join()
    jobs.stop("key")
    assert begun[0] is begun[1]


def test_a_job_that_has_ended_is_begun_again_only_if_asked() -> None:
    jobs = Jobs()
    first = jobs.start(None, "key", lambda job: "first")
    assert first.value() == "first"
    assert jobs.start(None, "key", lambda job: "second") is first
    assert jobs.start(None, "key", lambda job: "second", again=True).value() == "second"


def test_jobs_in_progress_are_remembered_before_any_that_have_ended() -> None:
    jobs = Jobs()
    going = jobs.start(None, "going", lambda job: job.stop.wait(PATIENT_S))
    for n in range(MAX_JOBS + 1):
        jobs.start(None, n, lambda job: None).value()
    assert jobs.find(0) is jobs.find(1) is None
    assert jobs.find(MAX_JOBS) is not None
    assert jobs.find("going") is going
    jobs.stop("going")
    assert going.value() is True
    assert jobs.find("going") is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError("No such file.", remedy="Look."), "No such file. Look."),
        (ValueError("secret"), "An unexpected error."),
    ],
)
def test_only_errors_of_ours_are_told(error: Exception, message: str) -> None:
    def work(job: Job[None]) -> None:
        raise error

    job = Jobs().start(None, "key", work)
    with pytest.raises(type(error)):
        job.value()
    assert job.failure == message


def test_only_steps_that_are_left_have_an_estimate() -> None:
    now = [0.0]
    job, pace = Job[None](), Pace(lambda: now[0])
    told = []
    for progress in ((10, 40, "Replaying"), (20, 40, "Replaying"), (40, 40, "Replaying"), (0, 0, "Comparing")):
        job.progress = progress
        told.append(progress_of(job, "Gathering", pace))
        now[0] += 10
    assert told[1:3] == [(0.5, "Replaying: 20 of 40, about 20 s left"), (1.0, "Replaying: 40 of 40")]
    assert told[3] == (0.0, "Comparing … 0 s")


class Counting:
    """An embedder that counts its texts, and embeds the first only when it may go on."""

    name = "counting"

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.at_work, self.may_go_on = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        self.at_work.set()
        assert self.may_go_on.wait(PATIENT_S)
        return np.zeros((len(texts), 2), dtype=np.float32)


def embedding(embedder: Counting, texts: Sequence[str], cache: SharedCache[Vectors]) -> Work:
    def work(job: Job[None]) -> None:
        CachedEmbedder(embedder, cache, progress=job.step).embed(texts)

    return work


def test_no_more_work_at_once_than_is_allowed() -> None:
    jobs, guard = Jobs(2), threading.Lock()
    at_once: list[int] = []
    now = [0]

    def work(job: Job[None]) -> None:
        with guard:
            now[0] += 1
            at_once.append(now[0])
        # Long enough for a third to start meanwhile if it could.
        job.stop.wait(0.05)
        with guard:
            now[0] -= 1

    with ExitStack() as runs:
        jobs = [runs.enter_context(jobs.joined(n, work)) for n in range(10)]
        assert all(job.wait(PATIENT_S) for job in jobs)
    assert len(at_once) == 10
    assert max(at_once) == 2


def test_work_ends_once_every_run_that_wanted_it_is_gone() -> None:
    jobs, embedder, cache = Jobs(1), Counting(), SharedCache[Vectors](1000)
    texts = [f"text {n}" for n in range(10 * TEXTS_AT_ONCE)]
    work = embedding(embedder, texts, cache)
    with ExitStack() as another:
        with jobs.joined("a question", work) as job:
            assert another.enter_context(jobs.joined("a question", work)) is job
            assert embedder.at_work.wait(PATIENT_S)
        assert not job.stop.is_set()
    embedder.may_go_on.set()
    assert job.wait(PATIENT_S)
    assert job.failure == "It was stopped."
    assert embedder.texts == texts[:TEXTS_AT_ONCE]
    with jobs.joined("a question", work) as anew:
        assert anew is not job
        assert anew.wait(PATIENT_S)
    assert len(cache) == len(texts)


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[None]]]:
    """Starts functions, each in a thread of its own."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


def test_one_turn_follows_the_other(beside: Callable[..., Future[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui_jobs, "LONGEST_S", PATIENT_S)
    at_once, most = 0, 0
    begun = threading.Barrier(8)

    def run() -> None:
        nonlocal at_once, most
        begun.wait(PATIENT_S)
        for _ in range(50):
            with ui_jobs.run_lock():
                at_once += 1
                most = max(most, at_once)
                at_once -= 1

    for future in [beside(run) for _ in range(8)]:
        future.result(PATIENT_S)
    assert most == 1


def test_a_run_that_waits_for_a_job_lets_others_go_first(
    beside: Callable[..., Future[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui_jobs, "LONGEST_S", PATIENT_S)
    job: Job[str] = Job()

    def other() -> None:
        with ui_jobs.run_lock():
            job.run(lambda _: "done")

    with ui_jobs.run_lock():
        future = beside(other)
        assert job.wait(PATIENT_S)
    future.result(PATIENT_S)


def test_a_run_that_hangs_holds_nobody_up_for_long(
    beside: Callable[..., Future[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ui_jobs, "LONGEST_S", 0.01)

    def other() -> None:
        with ui_jobs.run_lock():
            pass

    with ui_jobs.run_lock():
        beside(other).result(PATIENT_S)
    # The turn was given back once, by the run that had it.
    assert ui_jobs._run_lock.acquire(blocking=False)
    assert not ui_jobs._run_lock.acquire(blocking=False)
    ui_jobs._run_lock.release()
