"""The strategies alone, on figures calculated by hand; k, min_results and pins are in test_cutoff."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from syrupy.assertion import SnapshotAssertion

from ragfilter.layers.layer import estimate_background
from ragfilter.layers.strategies.adaptive_k import cut as adaptive_k
from ragfilter.layers.strategies.autocut import cut as autocut
from ragfilter.layers.strategies.car import cut as car
from ragfilter.layers.strategies.gap import cut as gap
from ragfilter.layers.strategies.moving_avg import cut as moving_avg
from ragfilter.layers.strategies.otsu import cut as otsu
from ragfilter.layers.strategies.relative import cut as relative
from ragfilter.layers.strategies.spike import cut as spike
from ragfilter.layers.strategies.strategy import StrategySpec, strategies
from ragfilter.model import Cut
from ragfilter.settings.schema import Cutoff

ADAPTIVE = [0.1, 0.2, 0.3, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 2.3]


@pytest.mark.parametrize(
    ("values", "threshold", "kept", "cliff"),
    [
        ([0.1, 0.2, 0.3], 0.1, 2, 2),  # 0.3 − 0.2 is a little less than 0.1 in floating point
        ([0.0, 0.1, 0.3, 0.5], 0.1, 2, 2),  # two gaps of 0.2: the first
        ([0.0, 0.0, 0.05, 0.10], 0.06, 4, None),  # all below: fallback ≤ 0.4
        ([0.0, 0.9, 0.95, 1.0], 0.1, 1, None),  # the first gap is skipped; fallback keeps one
        ([0.0, 0.5], 0.1, 1, None),  # two values have only the skipped gap
        ([0.3, 0.3, 0.3], 0.0, 2, 2),  # a threshold of nothing: any step reaches it
        ([0.3, 0.6, 0.2, 0.25], 0.0, 3, 3),  # a step down is never a cliff
    ],
)
def test_gap(values: list[float], threshold: float, kept: int, cliff: int | None) -> None:
    cut = gap(values, Cutoff(gap_threshold=threshold), 0, 1.0)
    assert (cut.kept, cut.cliff_after_rank) == (kept, cliff)


def test_the_fallback_starts_from_the_smallest_value_also_behind_a_far_pin() -> None:
    cut = gap([0.9, 0.5, 0.55, 0.6, 0.95], Cutoff(gap_threshold=1.0), 1, 1.0)
    assert cut.limit == pytest.approx(0.9)
    assert cut.kept == 4


@pytest.mark.parametrize(
    ("values", "jumps", "kept"),
    [
        # Scaled minus diagonal: 0, −.195, −.373, −.099, −.174, 0: peaks at index 3 and at the end.
        ([0.1899, 0.1901, 0.191, 0.21, 0.215, 0.23], 1, 3),
        ([0.1899, 0.1901, 0.191, 0.21, 0.215, 0.23], 2, 5),
        ([0.1899, 0.1901, 0.191, 0.21, 0.215, 0.23], 3, 6),
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], 1, 7),  # a straight line, with noise of 1e-16
        ([0.1, 0.9], 1, 2),  # two values always are a straight line
        ([0.1, 0.8, 0.9], 1, 1),  # 0, .375, 0
        ([0.1, 0.2, 0.8, 0.9, 1.6, 1.7], 1, 2),  # 0, −.138, .038, −.1, .138, 0: peaks at 2 and 4
        ([0.1, 0.2, 0.8, 0.9, 1.6, 1.7], 2, 4),
        ([1.7, 1.6, 1.0, 0.9, 0.2, 0.1], 2, 4),  # the same as scores: falling
        ([0.5, 0.9, 0.1, 0.5], 1, 4),  # no scale between two equal ends
    ],
)
def test_autocut(values: list[float], jumps: int, kept: int) -> None:
    assert autocut(values, Cutoff(strategy="autocut", jumps=jumps), 0, 1.0).kept == kept


def test_autocut_is_not_flattened_by_a_far_pin_and_never_cuts_one() -> None:
    # As 0.2, 0.2, 0.25, 0.8, 0.85: 0, −.25, −.423, .173, 0.
    assert autocut([1.9, 0.2, 0.25, 0.8, 0.85], Cutoff(strategy="autocut"), 1, 1.0).kept == 3
    # The jump of these pins, before rank 2, does not count.
    assert autocut([0.1, 0.8, 0.9, 0.95], Cutoff(strategy="autocut"), 2, 1.0).kept == 4


@pytest.mark.parametrize(
    ("values", "b_extra", "kept"),
    [
        (ADAPTIVE, 0, 3),  # the step of 1.0 lies in the tail of one; then 0.5 after rank 3
        (ADAPTIVE, 2, 5),
        (ADAPTIVE, 100, 10),
        ([0.1, 0.9], 0, 1),  # the first gap is not skipped here
        ([0.1, 0.3, 0.4, 1.9], 0, 1),  # four values: the last step is the tail
    ],
)
def test_adaptive_k(values: list[float], b_extra: int, kept: int) -> None:
    cut = adaptive_k(values, Cutoff(strategy="adaptive_k", b_extra=b_extra), 0, 1.0)
    assert cut.kept == kept


def largest_gap(similarities: NDArray[np.float64], tail: int) -> int:
    """How many the paper's code keeps (`largest_gap`), without the last `tail` gaps."""
    gaps = np.diff(similarities)
    return int(np.argmin(gaps[: len(gaps) - tail])) + 1


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.25, 0.5])
def test_adaptive_k_keeps_what_the_papers_code_keeps(share: float) -> None:
    rng = np.random.default_rng(8)
    for _ in range(1000):
        n = int(rng.integers(4, 120))
        similarities = np.sort(rng.random(n))[::-1]
        # The paper's code takes a share of the n − 1 gaps, which need not be one of the n chunks.
        left_out = int((n - 1) * share)
        settings = Cutoff(strategy="adaptive_k", tail=(left_out + 0.5) / n if left_out else 0)
        made = adaptive_k((1 - similarities).tolist(), settings, 0, 1.0)
        assert made.kept == largest_gap(similarities, left_out)


@pytest.mark.parametrize(
    ("values", "pinned", "kept"),
    [
        # (S (n − i) − T i)² / (i (n − i)): 3.1² / 3, 6² / 4, 3.3² / 3 of 0.1, 0.2, 1.6, 1.7
        ([0.1, 0.2, 1.6, 1.7], 0, 2),
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 0, 3),  # a straight line: the middle
        ([1.9, 0.1, 0.2, 1.6, 1.7], 1, 3),  # the pin counts as 0.1
        ([0.1, 1.6, 1.7, 1.8], 2, 2),  # never between two pins: 3 after rank 2, 2.2 after 3
    ],
)
def test_otsu(values: list[float], pinned: int, kept: int) -> None:
    assert otsu(values, Cutoff(strategy="otsu"), pinned, 9.0).kept == kept


@pytest.mark.parametrize(
    ("values", "share", "background", "kept", "limit"),
    [
        ([0.2, 0.4, 0.5, 0.6, 0.9], 0.3, 1.2, 3, 0.5),  # 0.2 + 0.3 × 1.0, inclusive
        ([0.2, 0.4, 0.5, 0.6, 0.9], 0.0, 1.2, 1, 0.2),
        ([0.2, 0.4, 0.5, 0.6, 0.9], 1.0, 1.2, 5, 1.2),
        ([0.5, 0.5, 0.6], 0.3, 0.4, 2, 0.5),  # nearer than the best: no way to go
    ],
)
def test_relative(values: list[float], share: float, background: float, kept: int, limit: float) -> None:
    cut = relative(values, Cutoff(strategy="relative", relative_offset=share), 0, background)
    assert (cut.kept, cut.limit) == (kept, pytest.approx(limit))


def test_relative_starts_from_the_smallest_value_also_behind_a_far_pin(snapshot: SnapshotAssertion) -> None:
    cut = relative([0.9, 0.2, 0.4, 0.8], Cutoff(strategy="relative"), 1, 1.2)
    assert (cut.kept, cut.limit) == (3, pytest.approx(0.5))
    assert cut.reason == snapshot


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        # Means of three: 0.2, 0.433, 0.667, 0.9: the first of the equal steps
        ([0.1, 0.2, 0.3, 0.8, 0.9, 1.0], 1),
        # 0.11, 0.21, 0.377, 0.51, 0.843, 1.177
        ([0.10, 0.11, 0.12, 0.4, 0.61, 0.52, 1.4, 1.61], 4),
        ([0.1, 0.2], 2),
        ([0.3, 0.3, 0.3, 0.3], 4),
    ],
)
def test_moving_avg(values: list[float], kept: int) -> None:
    assert moving_avg(values, Cutoff(), 0, 9.0).kept == kept


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        # Steps 0.1, 0.1, 0.5, 0.1: they grow before the fourth hit and shrink behind it
        ([0.1, 0.2, 0.3, 0.8, 0.9, 1.0], 4),
        # Steps that only shrink, then only grow: no bend, so the largest drop before the last place
        ([0.1, 0.5, 0.6, 0.65], 1),
        ([0.1, 0.15, 0.25, 0.65, 1.45], 3),
        ([0.3, 0.3, 0.3], 3),
        ([0.3], 1),
    ],
)
def test_spike(values: list[float], kept: int) -> None:
    assert spike(values, Cutoff(b_extra=3), 0, 9.0).kept == kept


@pytest.mark.parametrize(
    ("values", "kept", "clusters"),
    [
        ([0.1, 0.2, 0.3, 0.8, 0.9, 1.0], 3, 2),
        ([0.10, 0.11, 0.12, 0.50, 0.51, 0.52, 1.50, 1.51], 6, 3),
        ([0.1, 0.1, 0.1, 0.5, 0.5, 0.5], 3, 2),
        ([0.3, 0.3, 0.3, 0.3], 4, 0),
        ([0.1, 0.9], 2, 0),
    ],
)
def test_car(values: list[float], kept: int, clusters: int) -> None:
    cut = car(values, Cutoff(), 0, 9.0)
    assert cut.kept == kept
    assert (f"between {clusters} clusters" in cut.reason) == (clusters > 0)


VALUES = st.lists(st.floats(0, 4), min_size=1, max_size=60).map(sorted)


@given(VALUES, st.sampled_from([*strategies().values()]), st.integers(0, 5))
def test_a_winning_cliff_is_marked_rises_and_lies_outside_the_pins(
    values: list[float], strategy: StrategySpec, pinned: int
) -> None:
    pinned = min(pinned, len(values))
    cut = strategy.cut(values, Cutoff(), pinned, estimate_background(values))
    assert len(cut.gaps) == len(values) - 1
    if cut.cliff_after_rank is not None:
        winner = cut.gaps[cut.cliff_after_rank - 1]
        assert winner.cliff
        assert not winner.skipped
        assert winner.size == cut.gap
        assert winner.size >= 0
        assert cut.cliff_after_rank >= pinned


# Powers of two change no bit but the exponent.
@given(VALUES, st.sampled_from([otsu, relative, moving_avg, spike]), st.integers(-3, 3))
def test_what_needs_no_scale_keeps_the_same_on_any(values: list[float], cut: Callable[..., Cut], power: int) -> None:
    values = [round(value * 1024) / 1024 for value in values]
    scaled = [value * 2.0**power for value in values]
    before = cut(values, Cutoff(), 0, estimate_background(values))
    assert cut(scaled, Cutoff(), 0, estimate_background(scaled)).kept == before.kept
