"""Numbers are formatted the same everywhere for people."""

from __future__ import annotations

from functools import partial

from ragfilter.text import numbers


def test_numbers_as_people_read_them() -> None:
    for write, value, written in [
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
    ]:
        assert write(value) == written


def test_two_numbers_that_differ_look_different() -> None:
    for left, sign, right, written in [
        (0.2, "<", 0.35, "0.200 < 0.350"),
        (0.3498, "<", 0.35, "0.3498 < 0.3500"),
        (0.90003, ">", 0.9, "0.90003 > 0.90000"),
        (0.5, "<", 0.5, "0.500000000 < 0.500000000"),
    ]:
        assert numbers.apart(left, sign, right) == written
