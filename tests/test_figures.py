"""Numbers are formatted the same everywhere for people."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from ragfilter.text import numbers


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (numbers.distance, 0.88134, "0.881"),
        (numbers.distance, None, "–"),
        (numbers.ms, 999.9, "999.9 ms"),
        (numbers.ms, 17749.8, "17.7 s"),
        (numbers.chunk_count, 1, "1 chunk"),
        (numbers.token_count, 1, "1 token"),
        (numbers.money, 0.0, "0.0000"),
        (numbers.money, 0.00004, "under 0.0001"),
        (partial(numbers.money, currency="$"), 0.00004, "under $0.0001"),
        (partial(numbers.money, currency="$"), 1.3, "$1.3000"),
        (numbers.limit, 500, "0.5 s"),
    ],
)
def test_numbers_as_people_read_them(write: Callable[[float | None], str], value: float | None, written: str) -> None:
    assert write(value) == written


@pytest.mark.parametrize(
    ("left", "sign", "right", "written"),
    [
        (0.2, "<", 0.35, "0.200 < 0.350"),
        (0.3498, "<", 0.35, "0.3498 < 0.3500"),
        (0.90003, ">", 0.9, "0.90003 > 0.90000"),
        (0.5, "<", 0.5, "0.500000000 < 0.500000000"),
    ],
)
def test_two_numbers_that_differ_look_different(left: float, sign: str, right: float, written: str) -> None:
    assert numbers.apart(left, sign, right) == written
