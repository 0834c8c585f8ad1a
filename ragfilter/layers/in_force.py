"""Which labels chose the current settings, so that nobody takes figures measured on them for a
result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragfilter.layers.calibration import read
from ragfilter.layers.cutoff import Cutoff
from ragfilter.layers.origin import Origin, read_tuned
from ragfilter.layers.strategies.registry import strategy

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings


def origin(settings: Settings) -> Origin | None:
    """Where the current settings are from, where labels justified them."""
    cutoff = settings.cutoff
    tuned = read_tuned(cutoff.tuned_on) if cutoff.tuned_on else None
    if tuned is not None and tuned.is_in_force(settings):
        return tuned
    calibrated = cutoff.enabled and cutoff.strategy == "calibrated"
    return read(cutoff.calibration) if calibrated and cutoff.calibration else None


def seen_labels(settings: Settings) -> Origin | None:
    """The labels that may have chosen what is in force: the strategy, or a single value. Moving
    the values of the chosen strategy, or all but one, does not make the labels unseen."""
    cutoff, found = settings.cutoff, origin(settings)
    if found is not None or not cutoff.tuned_on:
        return found
    tuned = read_tuned(cutoff.tuned_on)
    if tuned.chose(settings):
        return tuned
    idle = {f"cutoff.{name}" for name in Cutoff.model_fields}
    if cutoff.enabled:
        idle -= {f"cutoff.{name}" for name in strategy(cutoff.strategy).reads}
    return tuned if tuned.still(settings).keys() - idle else None
