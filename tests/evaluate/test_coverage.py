"""How often a 95% interval covers the mean, simulated with figures like those of questions: bounded
and skewed, with ties. Each number is the share among the samples that have an interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ragfilter.evaluate.crossval import intervals

SAMPLES = 2000
Draw = Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]


def _mixed(share: float, value: float, rest: Draw) -> Draw:
    def draw(rng: np.random.Generator, size: tuple[int, int]) -> NDArray[np.float64]:
        return np.where(rng.random(size) < share, value, rest(rng, size))

    return draw


def _right(mean: float) -> tuple[Draw, float]:
    """Questions that are right or wrong."""
    return lambda rng, size: (rng.random(size) < mean).astype(float), mean


FIGURES: dict[str, tuple[Draw, float]] = {
    "F1": (lambda rng, size: rng.beta(2, 2, size), 0.5),
    "all or nothing": (lambda rng, size: rng.beta(0.5, 0.5, size), 0.5),
    "skewed gains": (lambda rng, size: rng.beta(0.7, 2.8, size) - 0.1, 0.1),
    "70% ties, the rest gains": (_mixed(0.7, 0.0, lambda rng, size: rng.beta(1, 4, size)), 0.06),
    "won and lost": (lambda rng, size: rng.choice([-1.0, 0, 1], size, p=[0.1, 0.7, 0.2]), 0.1),
    **{f"{mean:.0%} right": _right(mean) for mean in (0.05, 0.2, 0.5, 0.8, 0.9, 0.95)},
}


def covered(draw: Draw, mean: float, n: int) -> tuple[float, float]:
    """The share of intervals that cover the mean, and the share of samples that have one."""
    made = intervals(draw(np.random.default_rng(n), (n, SAMPLES)))
    given = [each.ends for each in made if each.ends is not None]
    hit = sum(low <= mean <= high for low, high in given)
    return hit / max(len(given), 1), len(given) / SAMPLES


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("n", [8, 10, 20])
def test_an_interval_covers_the_mean_as_often_as_it_says(name: str, n: int) -> None:
    share, given = covered(*FIGURES[name], n)
    assert share >= 0.935
    assert given > 0.05
