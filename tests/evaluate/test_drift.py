"""Drift: whether questions are answered as they were, and what moved if they are not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ragfilter.errors import InputError
from ragfilter.evaluate.drift import AnsweredQuestion, read_log, shifts, verdict


def sample(near: float, kept: float, *, fell: int = 0, seed: int = 0) -> list[AnsweredQuestion]:
    """Sixty questions around these means, of which some fell back."""
    rng = np.random.default_rng(seed)
    return [
        AnsweredQuestion(float(rng.normal(near, 0.1)), int(rng.poisson(kept)), n < fell)
        for n in range(60)
    ]


BEFORE = sample(0.4, 4)


def test_another_sample_of_the_same_is_no_drift() -> None:
    alarms = [verdict(shifts(BEFORE, sample(0.4, 4, seed=seed))) for seed in range(1, 21)]
    assert sum(map(bool, alarms)) <= 2


@pytest.mark.parametrize(
    ("now", "worse", "told"),
    [
        (sample(0.6, 4, seed=1), True, "The corpus or the model moved: best distance"),
        (sample(0.4, 4, seed=1), True, "The filter got worse"),
        (sample(0.4, 9, seed=1), False, "The filter decides otherwise, on distances as before"),
        (sample(0.4, 4, fell=20, seed=1), False, "share of fallbacks 0.000 → 0.333"),
        (sample(0.4, 0.2, seed=1), False, "share of empty results"),
    ],
)
def test_what_moved_is_told_apart(now: list[AnsweredQuestion], worse: bool, told: str) -> None:
    assert told in verdict(shifts(BEFORE, now), worse=worse)


def test_few_questions_are_not_tested() -> None:
    assert shifts(BEFORE[:7], BEFORE) == ()
    assert verdict(()) == verdict((), worse=True) == ""


def test_a_log_is_read_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "day.jsonl"
    rows = [
        {"query": "a", "kept": 3, "fallback": [], "nearness": 0.4},
        {"message": "something else"},
        {"query": "b", "kept": 0, "fallback": ["quality"], "nearness": None},
    ]
    log.write_text("not JSON\n" + "\n".join(map(json.dumps, rows)), "utf-8")
    assert read_log(log) == [AnsweredQuestion(0.4, 3, False), AnsweredQuestion(None, 0, True)]
    log.write_text("{}", "utf-8")
    with pytest.raises(InputError, match="holds no question"):
        read_log(log)
