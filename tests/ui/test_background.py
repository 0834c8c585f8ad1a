"""Pieces of an answer as they are passed on to the page, and work that runs share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from waiting import PATIENT_S, SILENT_S

from ragfilter.answer.context import Context
from ragfilter.basics.shelf import Shelf
from ragfilter.model import Chunk, Hit
from ragfilter.protocols import Progress, Vectors
from ragfilter.ui.look.vectors import AT_ONCE, Remembered
from ragfilter.ui.session import answers, asking
from ragfilter.ui.session.answers import AnswerSide
from ragfilter.ui.session.background import Job, Shared, pieces
from ragfilter.ui.session.resources import Resources

Work = Callable[[Job[None]], None]


def test_nothing_is_lost_and_the_first_comes_at_once() -> None:
    drawn, waited = threading.Event(), []

    def source() -> Iterator[str]:
        yield "a"
        waited.append(drawn.wait(PATIENT_S))
        yield "b"

    came = pieces(source(), SILENT_S)
    assert next(came) == "a"
    drawn.set()
    assert "".join(came) == "b"
    assert waited == [True]


def test_pieces_that_come_close_together_are_one() -> None:
    came = list(pieces((str(n % 10) for n in range(10_000)), 0.2))
    assert "".join(came) == "0123456789" * 1_000
    assert len(came) < 100


def test_while_nothing_comes_the_reader_has_its_turn() -> None:
    turn = threading.Event()

    def late() -> Iterator[str]:
        turn.wait(SILENT_S)
        yield "a"

    came = pieces(late(), 0.05)
    assert next(came) == ""
    turn.set()
    assert "".join(came) == "a"


def test_what_came_before_a_failure_is_there() -> None:
    def fails() -> Iterator[str]:
        yield "a"
        raise KeyError

    came: list[str] = []
    with pytest.raises(KeyError):
        came.extend(pieces(fails(), 0.05))
    assert "".join(came) == "a"


class Counting:
    """An embedder that counts its texts, and embeds the first only when it may go on."""

    name = "counting"

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.at_work, self.may_go_on = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        self.texts += texts
        self.at_work.set()
        assert self.may_go_on.wait(PATIENT_S)
        return np.zeros((len(texts), 2), dtype=np.float32)


def embedding(embedder: Counting, texts: Sequence[str], shelf: Shelf[Vectors]) -> Work:
    def work(job: Job[None]) -> None:
        Remembered(embedder, shelf, progress=job.step).embed(texts)

    return work


def test_runs_that_want_the_same_share_one_computation() -> None:
    shared, embedder = Shared(2), Counting()
    work = embedding(embedder, ["a", "b"], Shelf(10))
    with ExitStack() as runs:
        jobs = {runs.enter_context(shared.joined("a question", work)) for _ in range(20)}
        embedder.may_go_on.set()
        (job,) = jobs
        assert job.wait(PATIENT_S)
        assert not job.failure
    assert embedder.texts == ["a", "b"]


def test_no_more_work_at_once_than_is_allowed() -> None:
    shared, guard = Shared(2), threading.Lock()
    at_once: list[int] = []
    now = [0]

    def work(job: Job[None]) -> None:
        with guard:
            now[0] += 1
            at_once.append(now[0])
        # Long enough that a third would begin meanwhile, if it could.
        job.stop.wait(0.05)
        with guard:
            now[0] -= 1

    with ExitStack() as runs:
        jobs = [runs.enter_context(shared.joined(n, work)) for n in range(10)]
        assert all(job.wait(PATIENT_S) for job in jobs)
    assert len(at_once) == 10
    assert max(at_once) == 2


def test_work_ends_once_every_run_that_wanted_it_is_gone() -> None:
    shared, embedder, shelf = Shared(1), Counting(), Shelf[Vectors](1000)
    texts = [f"text {n}" for n in range(10 * AT_ONCE)]
    work = embedding(embedder, texts, shelf)
    with ExitStack() as another:
        with shared.joined("a question", work) as job:
            assert another.enter_context(shared.joined("a question", work)) is job
            assert embedder.at_work.wait(PATIENT_S)
        assert not job.stop.is_set()
    embedder.may_go_on.set()
    assert job.wait(PATIENT_S)
    assert job.failure == "It was stopped."
    assert embedder.texts == texts[:AT_ONCE]
    with shared.joined("a question", work) as anew:
        assert anew is not job
        assert anew.wait(PATIENT_S)
    assert len(shelf) == len(texts)


def test_work_that_waits_for_its_turn_never_begins_if_its_run_is_gone() -> None:
    shared, first, second = Shared(1), Counting(), Counting()
    with shared.joined("first", embedding(first, ["a"], Shelf(10))) as job:
        assert first.at_work.wait(PATIENT_S)
        with shared.joined("second", embedding(second, ["b"], Shelf(10))) as waiting:
            pass
        first.may_go_on.set()
        assert waiting.wait(PATIENT_S)
        assert job.wait(PATIENT_S)
    assert second.texts == []


class Left(BaseException):
    """What Streamlit raises in a run whose session is gone or that another run supersedes."""


def test_an_answer_is_not_made_for_a_run_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Counting()
    bench = SimpleNamespace(embedder=embedder, chat=None)
    resources = Resources(cast("Any", bench), cast("Any", SimpleNamespace(answer_timeout_s=1)))
    text = " ".join(f"The owl number {n} is fine." for n in range(3 * AT_ONCE))
    side = AnswerSide("filtered", Context((Hit(Chunk("a", text), 0.1, 1),), (), "", 0))
    jobs: list[Job[None]] = []

    def leave(job: Job[None]) -> None:
        jobs.append(job)
        assert embedder.at_work.wait(PATIENT_S)
        raise Left

    with monkeypatch.context() as patch:
        patch.setattr(asking, "until_done", leave)
        with pytest.raises(Left):
            answers.extract("owls", [side], resources, None)
    embedder.may_go_on.set()
    assert jobs[0].wait(PATIENT_S)
    assert len(embedder.texts) == AT_ONCE
    assert answers.lacking("owls", (side, side), resources) == [side, side]

    monkeypatch.setattr(asking, "until_done", lambda job: job.wait(PATIENT_S))
    answers.extract("owls", [side], resources, None)
    assert len(embedder.texts) == len(set(embedder.texts)) == 3 * AT_ONCE + 1
    assert answers.lacking("owls", (side, side), resources) == []
