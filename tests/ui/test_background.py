"""Pieces of an answer as they are passed on to the page."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from waiting import PATIENT_S, SILENT_S

from ragfilter.ui.session.background import pieces


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
