"""Confidence, with the seed's figures 0.2 and 0.4 and its gap of 0.1."""

from __future__ import annotations

from ragfilter.results.rows import confidence
from ragfilter.settings.schema import Confidence


def test_the_seeds_levels() -> None:
    for distance, gap_before, level in [
        (0.12, None, "high"),
        (0.2, 0.02, "medium"),
        (0.3 - 0.1, 0.02, "medium"),  # 0.19999999999999998
        (0.1 + 0.3, -0.2, "medium"),
        (0.35, 0.13, "low"),
        (0.15, 0.1, "low"),
        (0.3, 0.3 - 0.2, "low"),  # 0.09999999999999998
        (-1e-7, None, "high"),
    ]:
        assert confidence(distance, gap_before, Confidence()) == level


def test_the_thresholds_are_settings() -> None:
    settings = Confidence(high_below=0.8, medium_below=1.2, large_gap=0.3)
    assert confidence(0.79, 0.29, settings) == "high"
    assert confidence(1.2, 0.29, settings) == "medium"
    assert confidence(0.79, 0.3, settings) == "low"
