"""What page and command line say of a tuning in the same words. Pure."""

from __future__ import annotations

from typing import Any

from ragfilter.evaluate.tune import Tuning
from ragfilter.layers.calibration import read
from ragfilter.settings.schema import field

NAMES = {"f1": "F1", "f2": "F2", "tokens": "tokens"}


def notes(made: Tuning) -> list[str]:
    """What is to be known beside the figures."""
    told = []
    if made.seen:
        told.append(
            "The settings from before were learned from labels; if from these, their figures are "
            "better than they would be elsewhere."
        )
    if made.why_not:
        told.append(f"Nothing was learned: {made.why_not}.")
    if made.dial:
        kept = "; ".join(f"{float(s):.0%} asked, {kept:.0%} kept" for s, kept in made.dial.items())
        told.append(f"Recall dial, of the relevant hits found, held out: {kept}.")
    return told


def shown(path: str, value: Any) -> str:
    """A setting's value in a line: what was learned is longer than that."""
    return read(value).summary if value and field(path).table else str(value)
