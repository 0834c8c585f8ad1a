"""Precision, recall and F1 of a set of kept chunks.

Source: Adaptive Filtering Algorithm, "Evaluation Metrics". The figures are SetP, SetR and SetF of
ir-measures, except if nothing is relevant or nothing is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from ragfilter.extras import extra


@dataclass(frozen=True, slots=True)
class Scores:
    """Each score is between 0 and 1."""

    precision: float
    recall: float
    f1: float


def precision_recall_f1(kept: Collection[str], relevant: Collection[str]) -> Scores:
    """Scores of the ids in `kept` against those in `relevant`; order and repeats do not count.

    Nothing kept: all 0. Nothing relevant: all 1 if nothing is kept, else precision and F1 are 0
    and recall is 1, since nothing was missed.
    """
    kept, relevant = set(kept), set(relevant)
    if not relevant:
        return Scores(0.0, 1.0, 0.0) if kept else Scores(1.0, 1.0, 1.0)
    if not kept:
        return Scores(0.0, 0.0, 0.0)
    return _scores(len(kept), len(relevant), len(kept & relevant))


@lru_cache(maxsize=4096)
def _scores(kept: int, relevant: int, both: int) -> Scores:
    """The scores of sets of these sizes. Which ids the sets hold makes no difference."""
    with extra("eval"):
        from ir_measures import Qrel, ScoredDoc, SetF, SetP, SetR, calc_aggregate

    labels = [Qrel("q", str(i), 1) for i in range(relevant)]
    run = [ScoredDoc("q", str(i), 0.0) for i in range(relevant - both, relevant - both + kept)]
    found = calc_aggregate([SetP, SetR, SetF], labels, run)
    return Scores(precision=found[SetP], recall=found[SetR], f1=found[SetF])


def relevant_of(labels: Mapping[str, int]) -> frozenset[str]:
    """The chunks that are labelled relevant."""
    return frozenset(i for i, label in labels.items() if label > 0)


def unlabelled_of(kept: Iterable[str], labels: Mapping[str, int]) -> frozenset[str]:
    """The chunks without a label, which count as irrelevant."""
    return frozenset(i for i in kept if i not in labels)


def f1_at_most(kept: Collection[str], labels: Mapping[str, int]) -> float:
    """F1 of the ids in `kept` if all unlabelled ones were relevant."""
    return precision_recall_f1(kept, relevant_of(labels) | unlabelled_of(kept, labels)).f1


def mean_of(scores: Sequence[Scores]) -> Scores | None:
    """The mean of each score; None for an empty sequence."""
    if not scores:
        return None
    return Scores(
        precision=fmean(s.precision for s in scores),
        recall=fmean(s.recall for s in scores),
        f1=fmean(s.f1 for s in scores),
    )


def noise_reduction(irrelevant: Iterable[tuple[int, int]]) -> float | None:
    """The share of irrelevant chunks that was removed, over pairs of before and after.

    Chunks of several queries are counted together. None if there were none before, and negative if
    there are more after.
    """
    pairs = list(irrelevant)
    before, after = sum(b for b, _ in pairs), sum(a for _, a in pairs)
    return None if before == 0 else 1 - after / before
