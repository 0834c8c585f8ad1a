"""Pieces of an answer on their way to the page."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ragfilter.ui.session.background import pieces


def test_nothing_is_lost_and_the_first_comes_at_once() -> None:
    began = time.monotonic()
    came = pieces(iter(["a", "b", "c"]), 60)
    first = next(came)
    assert time.monotonic() - began < 30
    assert first + "".join(came) == "abc"


def test_pieces_that_come_close_together_are_one() -> None:
    came = list(pieces((str(n % 10) for n in range(10_000)), 0.2))
    assert "".join(came) == "0123456789" * 1_000
    assert len(came) < 100


def test_while_nothing_comes_the_reader_has_its_turn() -> None:
    def late() -> Iterator[str]:
        time.sleep(0.5)
        yield "a"

    *waited, last = pieces(late(), 0.05)
    assert set(waited) == {""}
    assert last == "a"


def test_what_came_before_a_failure_is_there() -> None:
    def fails() -> Iterator[str]:
        yield "a"
        raise KeyError

    came: list[str] = []
    with pytest.raises(KeyError):
        came.extend(pieces(fails(), 0.05))
    assert "".join(came) == "a"
