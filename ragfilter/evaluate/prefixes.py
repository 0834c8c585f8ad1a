"""The first k of every query's unfiltered ranking, for every k up to `DEEPEST`. Pure; numpy.

They give the best fixed k, the oracle, and what a threshold on the distance keeps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

import numpy as np

from ragfilter.answer.context import cost, fill, fits
from ragfilter.engine.pool import unfiltered
from ragfilter.evaluate.crossval import Choice, Table, Tables, Target, pick, picked
from ragfilter.evaluate.labelled_queries import Qrels
from ragfilter.evaluate.metrics import Counts, f_measure, figures, ndcg, relevant_of
from ragfilter.model import Pool, User
from ragfilter.settings.schema import Settings

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
    costs = (cost(hit.chunk) for hit in ranking)
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
    """Counts of those of the first k that fit the prompt: a row for each query, a column for each k. The last column
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


def oracle(orders: Tables, target: Target = Target()) -> Tables:
    """All figures of each query's best prefix."""
    return picked(orders, best_prefix(orders, target))


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
    fitting = np.diff(tokens) > 0
    grades = np.array(curve.grades)[fitting]
    by_place = [[0, *each] for each in (grades > 0, grades < 0)]
    kept = np.cumsum([0, *fitting])
    found, unlabelled = np.cumsum(by_place, axis=1)[:, kept]
    return np.stack([kept, found, unlabelled, tokens])[:, _columns(len(curve.grades))]


@lru_cache(maxsize=8)
def _deep(settings: Settings) -> Settings:
    """The settings with `DEEPEST` as the unfiltered k."""
    return settings.with_values({"retrieval.k": DEEPEST})
