"""A learned calibration, as tuning stores it."""

from __future__ import annotations

from typing import Any

from ragfilter.settings.schema import Calibration

PLAIN: dict[str, Any] = {
    **dict.fromkeys(("embedder", "reranker", "labels", "date"), ""),
    **{"collection": "c", "space": "l2", "queries": 20, "relevant": 40, "depth": 12, "intercept": 1.0},
}


def calibration(**changes: Any) -> Calibration:
    """A plain calibration with these fields changed."""
    return Calibration(**(PLAIN | changes))
