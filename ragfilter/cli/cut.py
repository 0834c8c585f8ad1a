"""`ragfilter cut`: the cutoff alone, over given distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from ragfilter.cli import output
from ragfilter.cli.options import GapThreshold, SetValues, load_config, setting
from ragfilter.cli.program import command
from ragfilter.errors import InputError
from ragfilter.layers import cutoff
from ragfilter.model import Cut

LARGEST = 1e9
"""Sums of larger numbers would be too inexact to be compared with a threshold."""


@command(context_settings={"ignore_unknown_options": True}, json=True)
def cut(
    distances: Annotated[list[str], "Distances, best first."],
    strategy: Annotated[str | None, setting("cutoff.strategy", "--strategy", "-s")] = None,
    k: Annotated[str | None, setting("cutoff.max_results", "--k", "-k", metavar="N")] = None,
    gap_threshold: GapThreshold = None,
    distance_offset: Annotated[
        str | None, setting("cutoff.distance_offset", "--distance-offset", "--distance-threshold", metavar="NUMBER")
    ] = None,
    values: SetValues = None,
) -> None:
    """Apply the cutoff to a list of distances. Needs no collection."""
    flags = {
        "--strategy": {"cutoff.strategy": strategy},
        "--k": {"cutoff.max_results": k},
        "--gap-threshold": {"cutoff.gap_threshold": gap_threshold},
        "--distance-offset": {"cutoff.distance_offset": distance_offset},
    }
    numbers = [distance(given) for given in distances]
    settings = load_config("adaptive-gap", None, values, flags).settings.cutoff
    cutoff.check_distances_suffice(settings)
    decision = cutoff.cut(numbers, settings)
    output.show(document(decision), text(decision, numbers))


def distance(text: str) -> float:
    """Parse a number of at most `LARGEST`. Raises InputError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise InputError(
            f"{text!r} is not a distance.", remedy="Use numbers such as 0.12 0.18. Set settings with --set."
        )
    return value


def document(cut: Cut) -> dict[str, Any]:
    """The JSON document of `cut --json`. Gaps are rounded to 12 places; further digits are only rounding errors."""
    return {
        "kept": cut.kept,
        "strategy": cut.strategy,
        "cliff_after_rank": cut.cliff_after_rank,
        "gap": None if cut.gap is None else round(cut.gap, 12),
        "gaps": [round(gap.size, 12) for gap in cut.gaps],
        "limit": cut.limit,
        "reason": cut.reason,
    }


def text(cut: Cut, values: Sequence[float]) -> str:
    """The values, their gaps and the cut, with four decimals as in the debug trace."""
    marks = {gap.after_rank: "skipped" for gap in cut.gaps if gap.skipped} | {cut.cliff_after_rank: "cut"}
    notes = {gap.after_rank: f"{gap.size:+.4f} {marks.get(gap.after_rank, '')}" for gap in cut.gaps}
    rows = [
        (rank, f"{value:.4f}", "kept" if rank <= cut.kept else "dropped", notes.get(rank, ""))
        for rank, value in enumerate(values, start=1)
    ]
    head = ("rank", "distance", "outcome", "gap after it")
    return f"keep {cut.kept} of {len(values)}: {cut.reason}\n{output.table(head, rows)}"
