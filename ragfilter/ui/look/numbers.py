"""Number formats of the page, the same as everywhere else: see `ragfilter.text.numbers`."""

from __future__ import annotations

from ragfilter.text.numbers import (
    chunks,
    count,
    distance,
    limit,
    money,
    ms,
    p_value,
    seconds,
    signed,
    tokens,
)

__all__ = [
    "chunks",
    "count",
    "distance",
    "limit",
    "money",
    "ms",
    "p_value",
    "seconds",
    "signed",
    "tokens",
]
