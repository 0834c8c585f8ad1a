"""A collection has one run of drafting at a time, however many sessions ask for one."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ragfilter.basics.shelf import Shelf
from ragfilter.model import UNRESTRICTED
from ragfilter.ui.rules import drafting_run
from ragfilter.ui.session import background
from ragfilter.ui.session.background import Job


def test_sessions_that_start_at_once_begin_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    begun: list[Job[Any]] = []

    def start(_: object) -> Job[Any]:
        begun.append(Job())
        return begun[-1]

    def templates() -> tuple[()]:
        both.wait()
        return ()

    monkeypatch.setattr(background, "start", start)
    bench = SimpleNamespace(chat=object(), templates=templates)
    resources: Any = SimpleNamespace(drafting=Shelf[Any](4), bench=bench)
    asked = ("c", ["a"], UNRESTRICTED, resources)
    sessions = [threading.Thread(target=drafting_run._start, args=asked) for _ in range(2)]
    for session in sessions:
        session.start()
    for session in sessions:
        session.join()
    assert len(begun) == 1
