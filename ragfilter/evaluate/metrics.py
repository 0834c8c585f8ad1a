"""Precision, recall, F and nDCG: of kept chunks, and of the first k of every query's unfiltered ranking, for every k up
to `DEEPEST`. The latter give the best fixed k, the oracle, and what a threshold on the distance keeps. Nothing else
computes them. Pure; numpy.

Source: Adaptive Filtering Algorithm, "Evaluation Metrics". nDCG comes from ir-measures. The set
figures are computed from counts, for thousands of settings at once; tests compare them with SetP,
SetR and SetF of ir-measures. Cases that these leave undefined:

- Nothing kept: all are 0.
- Nothing relevant: all are 1 if nothing is kept; otherwise precision and F are 0, and recall is 1,
  since nothing was missed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ragfilter.answer.context_packing import block_tokens, fill, fits
from ragfilter.engine.pool import unfiltered
from ragfilter.errors import extra
from ragfilter.evaluate.crossval import Choice, Table, Tables, Target, pick, picked
from ragfilter.evaluate.labelled_queries import Qrels, relevant_of
from ragfilter.model import Pool, User
from ragfilter.settings.schema import Settings


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


def figures(counts: Counts, relevant: ArrayLike) -> dict[str, Table]:
    """All figures of counts, given how many chunks are `relevant`. `f1_most`: F1 if unlabelled ones were, too."""
    kept, found, unlabelled, tokens = (np.asarray(each, dtype=np.float64) for each in counts)
    relevant = np.asarray(relevant)
    precision, recall = _shares(kept, found, relevant)
    most = f_measure(*_shares(kept, found + unlabelled, relevant + unlabelled), 1.0)
    f1, f2 = (f_measure(precision, recall, beta) for beta in (1.0, 2.0))
    shares = {"precision": precision, "recall": recall, "f1": f1, "f2": f2}
    return shares | {"kept": kept, "tokens": tokens, "unlabelled": unlabelled, "f1_most": most}


def _shares(kept: Table, found: Table, relevant: Table) -> tuple[Table, Table]:
    """Precision and recall."""
    return ratio(found, kept, relevant == 0), ratio(found, relevant, 1.0)


def f_measure(precision: Table, recall: Table, beta: float) -> Table:
    """The weighted harmonic mean in which recall counts `beta` times as much as precision."""
    weight = beta * beta
    return ratio((1 + weight) * precision * recall, weight * precision + recall, 0.0)


def ratio(above: Table, below: Table, otherwise: ArrayLike) -> Table:
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


class Scores(NamedTuple):
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


DEEPEST = 50
"""The last rank of the unfiltered ranking that is considered."""
UNLABELLED = -1
SHOWN_RANKS = 30
"""How many ranks of a curve are drawn."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The first `DEEPEST` chunks of a query's unfiltered ranking, without their ids. For every rank: the distance, the
    grade (`UNLABELLED` without a label), the estimated tokens of the chunks up to this rank that fit the prompt, and
    (if requested) their nDCG."""

    query: str
    relevant: int
    distances: tuple[float, ...]
    grades: tuple[int, ...]
    tokens: tuple[int, ...]
    ndcg: tuple[float, ...] = ()

    def labelled(self, relevant: bool) -> list[tuple[int, float]]:
        """Rank and distance of the chunks labelled relevant, or irrelevant, among the first `SHOWN_RANKS`."""
        pairs = zip(self.distances[:SHOWN_RANKS], self.grades, strict=False)
        return [
            (rank, distance)
            for rank, (distance, grade) in enumerate(pairs, start=1)
            if grade != UNLABELLED and (grade > 0) == relevant
        ]


def curve_of(
    pool: Pool, labels: Mapping[str, int], settings: Settings, user: User | None = None, *, ranked: bool = False
) -> Curve:
    """The curve of a query; `ranked` adds nDCG."""
    ranking = unfiltered(pool, _deep(settings), user)
    budget = settings.context.max_context_tokens
    costs = (block_tokens(hit.chunk) for hit in ranking)
    fitting, ids = fits(ranking, budget)[0], [hit.id for hit in ranking]
    first_k = [list(compress(ids[:k], fitting)) for k in range(1, len(ids) + 1)]
    return Curve(
        query=pool.query,
        relevant=len(relevant_of(labels)),
        distances=tuple(hit.distance for hit in ranking),
        grades=tuple(labels.get(hit.id, UNLABELLED) for hit in ranking),
        tokens=tuple(fill(costs, budget)),
        ndcg=tuple(ndcg(first_k, labels)) if ranked else (),
    )


def counts_of(curves: Sequence[Curve]) -> Counts:
    """Counts of the first k chunks that fit the prompt: a row for each query, a column for each k. The last column
    keeps nothing, so ties go to a column that keeps something; it is best only if nothing is relevant."""
    return Counts(*np.stack([_cumulated(each) for each in curves], axis=1))


def prefixes(curves: Sequence[Curve]) -> Tables:
    """All figures of the first k, in the shape of `counts_of`."""
    return figures(counts_of(curves), np.array([[each.relevant] for each in curves]))


def prefixes_of_pools(pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User | None = None) -> Tables:
    """`prefixes` of pools, which are given by query id."""
    return prefixes([curve_of(pool, qrels[i], settings, user) for i, pool in pools.items()])


def without_nothing(orders: Tables) -> Tables:
    """Remove the last column, which keeps nothing."""
    return {name: values[:, :-1] for name, values in orders.items()}


def best_fixed_k(orders: Tables, folds: Choice, target: Target = Target()) -> tuple[int, Tables]:
    """The best k over all queries, and all figures of each query with the k that is best on the other folds."""
    ranked = without_nothing(orders)
    return 1 + target.choose(ranked), picked(ranked, target.held_out(ranked, folds))


def best_prefix(orders: Tables, target: Target = Target()) -> Choice:
    """The column of each query's best prefix: the oracle's choice."""
    best: Choice = np.argmax(orders[target.oracle], axis=1)
    return best


def by_k(of_each: Sequence[float], of_nothing: float) -> Table:
    """A value for every k up to `DEEPEST`, then for keeping nothing. A short ranking repeats its last value."""
    return np.array([of_nothing, *of_each])[_columns(len(of_each))]


def frontier(curves: Sequence[Curve]) -> tuple[tuple[float, float], ...]:
    """The oracle's line as (recall, precision): the means over each query's best prefix, for every weight of recall."""
    orders = prefixes(curves)
    points = set()
    for beta in (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0):
        best = np.argmax(f_measure(orders["precision"], orders["recall"], beta), axis=1)
        recall, precision = (float(pick(orders[name], best).mean()) for name in ("recall", "precision"))
        points.add((recall, precision))
    return tuple(sorted(points))


def within(curves: Sequence[Curve], threshold: float) -> Mapping[str, float]:
    """The mean of every figure if, of each query's first `DEEPEST` chunks, those up to this distance were kept."""
    kept = [np.searchsorted(each.distances, threshold, side="right") for each in curves]
    # Column -1 is the last one, which keeps nothing.
    last = np.array(kept, dtype=np.intp) - 1
    return {name: float(each.mean()) for name, each in picked(prefixes(curves), last).items()}


def _columns(length: int) -> Choice:
    return np.minimum([*range(1, DEEPEST + 1), 0], length)


def _cumulated(curve: Curve) -> Table:
    """Counts of chunks, relevant chunks, unlabelled chunks and tokens, for each prefix."""
    tokens = np.array([0, *curve.tokens])
    fitting, grades = np.diff(tokens) > 0, np.array(curve.grades)
    kept, found, unlabelled = ([0, *np.cumsum(fitting & each)] for each in (True, grades > 0, grades < 0))
    return np.stack([kept, found, unlabelled, tokens])[:, _columns(len(grades))]


@lru_cache(maxsize=8)
def _deep(settings: Settings) -> Settings:
    """The settings with `DEEPEST` as the unfiltered k."""
    return settings.with_values({"retrieval.k": DEEPEST})
