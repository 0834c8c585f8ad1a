"""The first k of every query's unfiltered ranking, for every k up to `DEEPEST`. Pure; numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress

import numpy as np

from ragfilter.answer.context import cost, fill, fits
from ragfilter.engine.replay import unfiltered
from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.crossval import Choice, Table, Tables, Target, picked
from ragfilter.evaluate.metrics import Counts, figures, relevant_of
from ragfilter.model import Hit, Pool, User
from ragfilter.settings.schema import Settings

DEEPEST = 50
"""How far down the unfiltered ranking anything is looked for."""
UNLABELLED = -1


@dataclass(frozen=True, slots=True)
class Curve:
    """The first `DEEPEST` chunks of the unfiltered ranking: distance, grade (`UNLABELLED` without a
    label), and the estimated tokens of those up to here that fit the prompt."""

    distances: tuple[float, ...]
    grades: tuple[int, ...]
    tokens: tuple[int, ...]


def ranking_of(pool: Pool, settings: Settings, user: User | None = None) -> tuple[Hit, ...]:
    """The first `DEEPEST` hits of the unfiltered ranking."""
    return unfiltered(pool, _deep(settings), user)


def ids_of_each(ranking: Sequence[Hit], settings: Settings) -> list[list[str]]:
    """The ids of what fits the prompt of the first k, for every k from 1."""
    fitting, _ = fits(ranking, settings.context.max_context_tokens)
    ids = [hit.id for hit in ranking]
    return [list(compress(ids[:k], fitting)) for k in range(1, len(ids) + 1)]


def curve_of(ranking: Sequence[Hit], labels: Mapping[str, int], settings: Settings) -> Curve:
    """The curve of a query."""
    costs = (cost(hit.chunk) for hit in ranking)
    return Curve(
        distances=tuple(hit.distance for hit in ranking),
        grades=tuple(labels.get(hit.id, UNLABELLED) for hit in ranking),
        tokens=tuple(fill(costs, settings.context.max_context_tokens)),
    )


def prefixes(curves: Sequence[Curve], relevant: Sequence[int]) -> Tables:
    """Every figure of what fits the prompt of the first k: a row for each query, a column for each
    k. The last column is of nothing kept: so the first of several equal columns keeps something,
    and the last is best only if nothing is relevant."""
    counts = Counts(*np.stack([_cumulated(each) for each in curves], axis=1))
    return figures(counts, np.array(relevant)[:, None])


def prefixes_of_pools(
    pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User | None = None
) -> Tables:
    """The same of pools by query id."""
    curves = [
        curve_of(ranking_of(pool, settings, user), qrels[i], settings) for i, pool in pools.items()
    ]
    return prefixes(curves, [len(relevant_of(qrels[i])) for i in pools])


def without_nothing(orders: Tables) -> Tables:
    """The prefixes without the last column."""
    return {name: values[:, :-1] for name, values in orders.items()}


def best_fixed_k(orders: Tables, folds: Choice, target: Target = Target()) -> tuple[int, Tables]:
    """The best k over all queries, and every figure of each query with the k that is best on the
    other folds."""
    ranked = without_nothing(orders)
    return 1 + target.choose(ranked), picked(ranked, target.held_out(ranked, folds))


def oracle(orders: Tables, target: Target = Target()) -> Tables:
    """Every figure of each query's best prefix."""
    return picked(orders, np.argmax(orders[target.oracle], axis=1))


def by_k(of_each: Sequence[float], of_nothing: float) -> Table:
    """A value of every k up to `DEEPEST`, and of nothing kept last; beyond the end of a short
    ranking, that of the whole."""
    return np.array([of_nothing, *of_each])[_columns(len(of_each))]


def _columns(length: int) -> Choice:
    return np.minimum([*range(1, DEEPEST + 1), 0], length)


def _cumulated(curve: Curve) -> Table:
    """Chunks, relevant ones, unlabelled ones and tokens of the prefixes."""
    tokens = np.array([0, *curve.tokens])
    fitting = np.diff(tokens) > 0
    grades = np.array(curve.grades)[fitting]
    by_place = [[0, *each] for each in (grades > 0, grades < 0)]
    kept = np.cumsum([0, *fitting])
    found, unlabelled = np.cumsum(by_place, axis=1)[:, kept]
    return np.stack([kept, found, unlabelled, tokens])[:, _columns(len(curve.grades))]


@lru_cache(maxsize=8)
def _deep(settings: Settings) -> Settings:
    """The settings with an unfiltered k large enough for everything that is looked for."""
    return settings.with_values({"retrieval.k": DEEPEST})
