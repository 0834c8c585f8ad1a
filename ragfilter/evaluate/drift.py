"""Whether questions are answered as they were: two-sample tests against the baseline, unlabelled.

The best distance as a share of the background is what the search finds before the filter acts. If
it moved, the corpus or the model did, or other things are asked. If only the rest moved, the filter
decides otherwise. Pure, but for `read_log`; scipy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragfilter.basics.files import read_lines
from ragfilter.errors import InputError, extra
from ragfilter.text.numbers import p_value

LEVEL = 0.05
"""The chance of a false alarm in all figures together."""
MIN_QUERIES = 8
"""With fewer questions on a side, nothing is tested."""
SEARCHED = "best distance ÷ background"
MOVED = "The corpus or the model moved"


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """What one question came to: the best distance as a share of the background (None without
    distances), the number of kept chunks, and whether a layer fell back."""

    nearness: float | None
    kept: int
    fell_back: bool


@dataclass(frozen=True, slots=True)
class Shift:
    """A figure before and now: means or, for a share, from 0 to 1. `moved`: more than chance."""

    figure: str
    before: float
    now: float
    p_value: float
    moved: bool

    def __str__(self) -> str:
        return f"{self.figure} {self.before:.3f} → {self.now:.3f} ({p_value(self.p_value)})"


def shifts(
    before: Sequence[AnsweredQuestion], now: Sequence[AnsweredQuestion]
) -> tuple[Shift, ...]:
    """How the figures of two samples differ; empty if either is too small."""
    if min(len(before), len(now)) < MIN_QUERIES:
        return ()
    with extra("eval"):
        from scipy.stats import fisher_exact, ks_2samp

    def apart(a: list[float], b: list[float]) -> float:
        return float(ks_2samp(a, b, method="asymp").pvalue)

    def shares(a: list[float], b: list[float]) -> float:
        table = [[sum(x), len(x) - sum(x)] for x in (a, b)]
        return float(fisher_exact(table).pvalue)

    figures: tuple[tuple[str, Callable[[AnsweredQuestion], float | None], Any], ...] = (
        (SEARCHED, lambda each: each.nearness, apart),
        ("chunks kept", lambda each: each.kept, apart),
        ("share of empty results", lambda each: not each.kept, shares),
        ("share of fallbacks", lambda each: each.fell_back, shares),
    )
    compared = []
    for name, value, test in figures:
        a, b = ([float(v) for each in side if (v := value(each)) is not None]
                for side in (before, now))  # fmt: skip
        if min(len(a), len(b)) >= MIN_QUERIES:
            chance = test(a, b)
            moved = chance < LEVEL / len(figures)
            compared.append(Shift(name, float(np.mean(a)), float(np.mean(b)), chance, moved))
    return tuple(compared)


def verdict(compared: Sequence[Shift], *, worse: bool = False) -> str:
    """What moved, in a sentence; empty if nothing did and the filter is not `worse`, either."""
    moved = [shift for shift in compared if shift.moved]
    figures = ", ".join(map(str, moved))
    if any(shift.figure == SEARCHED for shift in moved):
        return f"{MOVED}: {figures}."
    if worse and compared:
        return "The filter got worse: what the search finds is as near as it was."
    return f"The filter decides otherwise, on distances as before: {figures}." if moved else ""


def read_log(path: Path) -> list[AnsweredQuestion]:
    """The questions of a log that ragfilter wrote as JSON lines; other lines are left out. Raises
    InputError if there is none."""
    questions = [each for line in read_lines(path) if (each := _answered(line)) is not None]
    if not questions:
        raise InputError(
            f"{path} holds no question.",
            remedy="Write the log with --log json, or the records of the logger ragfilter with "
            "their fields as JSON lines.",
        )
    return questions


def answered(rows: Iterable[Mapping[Any, Any]]) -> list[AnsweredQuestion]:
    """The same from rows of `evaluate.frame` by query."""
    return [
        AnsweredQuestion(_number(row["nearness"]), int(row["kept"]), bool(row["waiting"]))
        for row in rows
    ]


def _answered(line: str) -> AnsweredQuestion | None:
    try:
        row = json.loads(line)
        near = _number(row.get("nearness"))
        return AnsweredQuestion(near, int(row["kept"]), bool(row["fallback"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and np.isfinite(value) else None
