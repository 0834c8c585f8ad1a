"""Precision, recall, F and nDCG of kept chunks. Nothing else computes them. Pure.

Source: Adaptive Filtering Algorithm, "Evaluation Metrics". nDCG comes from ir-measures. The set
figures are computed from counts, for thousands of settings at once; tests compare them with SetP,
SetR and SetF of ir-measures. Cases that these leave undefined:

- Nothing kept: all are 0.
- Nothing relevant: all are 1 if nothing is kept; otherwise precision and F are 0, and recall is 1,
  since nothing was missed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from statistics import fmean
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragfilter.errors import extra

Values = NDArray[np.float64]


class FigureSpec(NamedTuple):
    """How a figure is shown. A `share` is from 0 to 1; shares and the kind `labelled` need labels. `tables` have a
    column for it, besides Evaluate."""

    label: str
    kind: Literal["share", "labelled", "counted", "price"] = "share"
    digits: int = 3
    tables: Collection[str] = ("report", "eval")


FIGURES = {
    "precision": FigureSpec("precision"),
    "recall": FigureSpec("recall"),
    "f1": FigureSpec("F1"),
    "f2": FigureSpec("F2"),
    "ndcg": FigureSpec("nDCG"),
    "kept": FigureSpec("chunks", "counted", 1),
    "tokens": FigureSpec("tokens", "counted", 0),
    "cost": FigureSpec("cost", "price", tables=()),
    "ms": FigureSpec("ms", "counted", 1, ("eval",)),
    "unlabelled": FigureSpec("unlabelled", "labelled", 1, ()),
    "f1_most": FigureSpec("F1 upper bound", tables=("eval",)),
}
"""The figures of a measurement, in the order of their columns."""


class Counts(NamedTuple):
    """Counts of kept chunks: all of them, those labelled relevant, those without a label (which count as irrelevant),
    and their estimated tokens in a prompt. Numbers, or arrays of the same shape."""

    kept: ArrayLike
    found: ArrayLike
    unlabelled: ArrayLike = 0.0
    tokens: ArrayLike = 0.0


def figures(counts: Counts, relevant: ArrayLike) -> dict[str, Values]:
    """All figures of counts, given how many chunks are `relevant`. `f1_most`: F1 if unlabelled ones were, too."""
    kept, found, unlabelled, tokens = (np.asarray(each, dtype=np.float64) for each in counts)
    relevant = np.asarray(relevant)
    precision, recall = _shares(kept, found, relevant)
    most = f_measure(*_shares(kept, found + unlabelled, relevant + unlabelled), 1.0)
    f1, f2 = (f_measure(precision, recall, beta) for beta in (1.0, 2.0))
    shares = {"precision": precision, "recall": recall, "f1": f1, "f2": f2}
    return shares | {"kept": kept, "tokens": tokens, "unlabelled": unlabelled, "f1_most": most}


def _shares(kept: Values, found: Values, relevant: Values) -> tuple[Values, Values]:
    """Precision and recall."""
    return ratio(found, kept, relevant == 0), ratio(found, relevant, 1.0)


def f_measure(precision: Values, recall: Values, beta: float) -> Values:
    """The weighted harmonic mean in which recall counts `beta` times as much as precision."""
    weight = beta * beta
    return ratio((1 + weight) * precision * recall, weight * precision + recall, 0.0)


def ratio(above: Values, below: Values, otherwise: ArrayLike) -> Values:
    """above / below, and `otherwise` where `below` is 0."""
    return np.where(below == 0, otherwise, above / np.where(below == 0, 1.0, below))


SET_FIGURES = tuple(figures(Counts(0, 0), 0))


def ndcg(rankings: Sequence[Sequence[str]], labels: Mapping[str, int]) -> list[float]:
    """nDCG of each whole ranking of chunk ids against all labels of a query, as trec_eval computes
    it: the gain is the grade. Raises DependencyError without ir-measures."""
    if not relevant_of(labels):
        return [float(not ranking) for ranking in rankings]
    with extra("eval"):
        from ir_measures import iter_calc, nDCG
    # Ids become numbers, since trec_eval does not accept every text, nor NumPy integers.
    ids = dict.fromkeys((*labels, *(i for ranking in rankings for i in ranking)))
    numbers = {chunk_id: str(number) for number, chunk_id in enumerate(ids)}
    grades = {numbers[chunk_id]: int(grade) for chunk_id, grade in labels.items()}
    # Each ranking is passed as a query of its own: a call for each takes ten times as long.
    run = {
        str(number): {numbers[i]: -float(place) for place, i in enumerate(ranking)}
        for number, ranking in enumerate(rankings)
        if ranking
    }
    scores = iter_calc([nDCG], dict.fromkeys(run, grades), run)
    by_number = {each.query_id: float(each.value) for each in scores}
    return [by_number.get(str(number), 0.0) for number in range(len(rankings))]


@dataclass(frozen=True, slots=True)
class Scores:
    """Each score is between 0 and 1."""

    precision: float
    recall: float
    f1: float


def precision_recall_f1(kept: Collection[str], relevant: Collection[str]) -> Scores:
    """Scores of the ids in `kept` against those in `relevant`; order and repeats do not count."""
    kept, relevant = set(kept), set(relevant)
    return _scores(len(kept), len(kept & relevant), len(relevant))


@lru_cache(maxsize=4096)
def _scores(kept: int, found: int, relevant: int) -> Scores:
    values = figures(Counts(kept, found), relevant)
    return Scores(*(float(values[name]) for name in ("precision", "recall", "f1")))


def relevant_of(labels: Mapping[str, int]) -> frozenset[str]:
    """The chunks that are labelled relevant."""
    return frozenset(i for i, label in labels.items() if label > 0)


def mean_of(scores: Sequence[Scores]) -> Scores | None:
    """The mean of each score; None for an empty sequence."""
    columns = zip(*map(astuple, scores), strict=True)
    return Scores(*map(fmean, columns)) if scores else None
