"""What `ragfilter cut` prints, and how it reads distances. Pure; needs neither store nor model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ragfilter.errors import InputError
from ragfilter.model import Cut

LARGEST = 1e9
"""Beyond it a sum of two is no longer exact enough to be compared with a threshold."""


def distance(text: str) -> float:
    """A number of at most `LARGEST`. Raises InputError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise InputError(f"{text!r} is not a distance.", remedy="Use numbers such as 0.12 0.18.")
    return value


def document(cut: Cut) -> dict[str, Any]:
    """What `cut --json` prints. Gaps are rounded to 12 places: what is beyond is float noise."""
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
    """The values with their gaps and the cut; four decimals, as in the debug trace."""
    gaps = {gap.after_rank: gap for gap in cut.gaps}
    lines = [f"keep {cut.kept} of {len(values)}: {cut.reason}"]
    for rank, value in enumerate(values, start=1):
        mark = "kept" if rank <= cut.kept else "dropped"
        line = f"{rank:4d}  {value:.4f}  {mark:7s}"
        gap = gaps.get(rank)
        if gap is not None:
            note = "  skipped" if gap.skipped else ""
            note = "  cut" if rank == cut.cliff_after_rank else note
            line += f"  gap {gap.size:+.4f}{note}"
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"
