"""Confidence of one hit, from its distance and the step before it.

Source: Adaptive Filtering Algorithm, "Confidence Scores".
"""

from __future__ import annotations

from typing import Literal

from ragfilter.settings.schema import Confidence

Level = Literal["high", "medium", "low"]

EPSILON = 1e-9


def confidence(distance: float, gap_before: float | None, settings: Confidence) -> Level:
    """high below `high_below`, medium up to `medium_below`, low beyond or after a large gap.

    `gap_before` is the distance from the previous hit, None for the first hit. A gap of `large_gap`
    or more makes the confidence low, however near the hit is.
    """
    if gap_before is not None and gap_before >= settings.large_gap - EPSILON:
        return "low"
    if distance < settings.high_below - EPSILON:
        return "high"
    if distance <= settings.medium_below + EPSILON:
        return "medium"
    return "low"
