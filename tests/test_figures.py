"""Numbers are written alike wherever people read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragfilter import figures


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (figures.distance, 0.88134, "0.881"),
        (figures.distance, 1.0, "1.000"),
        (figures.distance, None, "–"),
        (figures.ms, 0.04, "0.0 ms"),
        (figures.ms, 999.9, "999.9 ms"),
        (figures.ms, 17749.8, "17.7 s"),
        (figures.ms, 1_234_567.0, "1,234.6 s"),
        (figures.count, 1723, "1,723"),
        (figures.chunks, 1, "1 chunk"),
        (figures.chunks, 1000, "1,000 chunks"),
        (figures.tokens, 1, "1 token"),
        (figures.tokens, 1723, "1,723 tokens"),
        (figures.money, 0.0, "0.0000"),
        (figures.money, 1.3, "1.3000"),
        (figures.money, 0.0001, "0.0001"),
        (figures.money, 0.00004, "under 0.0001"),
        (figures.limit, 500, "0.5 s"),
        (figures.seconds, 0.04, "under 0.1 s"),
        (figures.seconds, 0.24, "about 0.2 s"),
    ],
)
def test_numbers_as_people_read_them(
    write: Callable[[float | None], str], value: float | None, written: str
) -> None:
    assert write(value) == written
