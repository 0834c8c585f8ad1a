"""Decides many queries at once, in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from ragfilter.library.result import Result

Asked = tuple[str, list[Any]]
"""A query and its hits."""
PARTS = 8
"""How many parts of a batch each process gets, so that all end at about the same time."""
_deciding: list[Callable[..., Result]] = []
"""What a process decides with."""


def decide(
    flt: Callable[..., Result], asked: Sequence[Asked], processes: int | None = None
) -> list[Result]:
    """The results of `flt` for each query, in order. `processes` are as many as there are cores,
    if not given; with one, everything is decided here."""
    workers = min(processes or os.cpu_count() or 1, len(asked))
    if workers < 2:
        return [flt(*each) for each in asked]
    # Threads of models do not survive a fork.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin, (flt,)) as pool:
        return list(pool.map(_decide, asked, chunksize=max(1, len(asked) // (PARTS * workers))))


def _begin(flt: Callable[..., Result]) -> None:
    _deciding[:] = [flt]


def _decide(asked: Asked) -> Result:
    return _deciding[0](*asked)
