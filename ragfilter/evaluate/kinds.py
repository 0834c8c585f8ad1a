"""The questions of a run beside the unfiltered first k: which fail, change and gain most. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.table import figures_of
from ragfilter.evaluate.variants import IN_FORCE, UNFILTERED

Kind = Literal["failures", "changed", "highlights"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CHANGED = 1e-9
GREAT = 0.2
"""A gain of F1 over the unfiltered first k that is worth highlighting."""
ABOUT = (
    "Failures: a lower F1 than the unfiltered first k, or nothing relevant found. Changed: a "
    "different F1. Highlights: a gain of 0.2 or more without losing recall."
)


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question with the settings of the run, compared with the unfiltered first k."""

    id: str
    query: str
    lost: int
    f1: float
    gain: float
    precision: float
    recall: float
    kept: int
    relevant: int
    unlabelled: int
    plain_recall: float


def rows(records: Sequence[QueryRecord]) -> tuple[QuestionRow, ...]:
    """The questions, sorted by the number of relevant chunks lost, then by F1."""
    own, plain = figures_of(records, IN_FORCE), figures_of(records, UNFILTERED)
    made = [
        QuestionRow(
            id=record.id,
            query=record.query,
            lost=record.lost,
            f1=float(own["f1"][place]),
            gain=float(own["f1"][place] - plain["f1"][place]),
            precision=float(own["precision"][place]),
            recall=float(own["recall"][place]),
            kept=record.kept[IN_FORCE].chunks,
            relevant=record.relevant,
            unlabelled=record.kept[IN_FORCE].unlabelled,
            plain_recall=float(plain["recall"][place]),
        )
        for place, record in enumerate(records)
    ]
    return tuple(sorted(made, key=lambda row: (-row.lost, row.f1)))


def only(rows: Sequence[QuestionRow], kind: Kind) -> tuple[QuestionRow, ...]:
    """The questions of one kind, as `ABOUT` says; highlights with the largest gain first."""
    match kind:
        case "failures":
            return tuple(row for row in rows if row.gain < -CHANGED or row.f1 == 0)
        case "changed":
            return tuple(row for row in rows if abs(row.gain) > CHANGED)
        case "highlights":
            best = (r for r in rows if r.gain >= GREAT and r.recall >= r.plain_recall - CHANGED)
            return tuple(sorted(best, key=lambda row: -row.gain))
