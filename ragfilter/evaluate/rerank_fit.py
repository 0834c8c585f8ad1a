"""Fits a reranker's scores to labels: a logistic map from its own scale to 0..1.

Source: docs/tuning.md. score = 1 / (1 + exp(-(slope * s + offset))), the share of relevant chunks
among those with that score. How well it works is told on queries that it was not fitted on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragfilter.basics.extras import extra
from ragfilter.errors import InputError
from ragfilter.evaluate.metrics import relevant_of
from ragfilter.model import Pool
from ragfilter.protocols import Progress, Reranker

Floats = npt.NDArray[np.float64]
LEAST = 10
"""Labelled queries that it takes."""
TINY = 1e-9


@dataclass(frozen=True, slots=True)
class RerankFit:
    """The map, and its log-loss on every other query, fitted on the rest; `base` is that of the
    mere share of relevant chunks."""

    slope: float
    offset: float
    queries: int
    hits: int
    relevant: int
    loss: float
    base: float


def fit_reranker(
    pools: Mapping[str, Pool],
    qrels: Mapping[str, Mapping[str, int]],
    reranker: Reranker,
    *,
    depth: int,
    progress: Progress | None = None,
) -> RerankFit:
    """Fit the scores of the first `depth` hits of each pool. Raises InputError for too few labels,
    or if the scores do not rise with relevance, and ModelError."""
    scored: list[tuple[Floats, Floats]] = []
    for done, (query_id, pool) in enumerate(pools.items(), start=1):
        relevant = relevant_of(qrels[query_id])
        hits = [hit for hit in pool.hits if hit.found_by == "query"][:depth]
        scores = list(reranker.score(pool.query, [hit.chunk.passage for hit in hits]))
        right = [float(hit.id in relevant) for hit in hits]
        scored.append((np.array(scores, dtype=np.float64), np.array(right)))
        if progress is not None:
            progress(done, len(pools))
    if len(scored) < LEAST:
        raise InputError(f"Fitting needs at least {LEAST} labelled queries.", remedy="Label more.")
    slope, offset = _fit(scored)
    ours, base = _loss(scored[1::2], *_fit(scored[::2])), _loss(scored[1::2], 0.0, None)
    every = np.concatenate([each for _, each in scored])
    return RerankFit(slope, offset, len(scored), len(every), int(every.sum()), ours, base)


def _fit(scored: Sequence[tuple[Floats, Floats]]) -> tuple[float, float]:
    with extra("eval"):
        from sklearn.linear_model import LogisticRegression

    scores = np.concatenate([each for each, _ in scored])
    right = np.concatenate([each for _, each in scored])
    if not 0 < right.sum() < len(right):
        raise InputError(
            "Fitting needs both relevant and irrelevant hits.", remedy="Label more queries."
        )
    mean, spread = scores.mean(), max(scores.std(), TINY)
    model = LogisticRegression(max_iter=2000).fit(((scores - mean) / spread)[:, None], right)
    slope = float(model.coef_[0][0] / spread)
    if slope <= 0:
        raise InputError(
            "The reranker's scores do not rise with relevance.",
            remedy="Check the model, or use another reranker.",
        )
    return float(f"{slope:.4g}"), float(f"{model.intercept_[0] - slope * mean:.4g}")


def _loss(scored: Sequence[tuple[Floats, Floats]], slope: float, offset: float | None) -> float:
    """The mean log-loss; without an offset, of the share of relevant hits."""
    scores = np.concatenate([each for each, _ in scored])
    right = np.concatenate([each for _, each in scored])
    chance = np.full(len(right), right.mean())
    if offset is not None:
        chance = 1 / (1 + np.exp(-(slope * scores + offset)))
    chance = np.clip(chance, TINY, 1 - TINY)
    return float(-(right * np.log(chance) + (1 - right) * np.log(1 - chance)).mean())
