"""Precision, recall and F1 of a set of kept chunks.

Source: Adaptive Filtering Algorithm, "Evaluation Metrics". The figures are those of ir-measures'
SetP, SetR and SetF; only where nothing is relevant ours differ, see `precision_recall_f1`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scores:
    """Each 0..1."""

    precision: float
    recall: float
    f1: float


def precision_recall_f1(kept: Collection[str], relevant: Collection[str]) -> Scores:
    """Scores of the ids in `kept` against those in `relevant`; order and repeats do not count.

    Nothing kept: all 0. Nothing relevant: all 1 where nothing is kept, else precision and F1 are 0
    and recall is 1, since nothing was missed.
    """
    kept, relevant = set(kept), set(relevant)
    if not relevant:
        return Scores(0.0, 1.0, 0.0) if kept else Scores(1.0, 1.0, 1.0)
    common = len(kept & relevant)
    if not common:
        return Scores(0.0, 0.0, 0.0)
    return Scores(
        precision=common / len(kept),
        recall=common / len(relevant),
        f1=2 * common / (len(kept) + len(relevant)),
    )
