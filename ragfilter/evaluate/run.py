"""Measures labelled queries with given settings against the unfiltered search.

Source: Adaptive Filtering Algorithm, "Evaluation Metrics".

Conventions:

- Relevant means a label of 1 or more. Means are over queries. Nothing kept counts as precision 0,
  recall 0, F1 0.
- Noise reduction is 1 − irrelevant kept / irrelevant in the unfiltered first k, each side by its
  own k; over several queries the chunks are counted together. It is None if the first k hold
  nothing irrelevant, and negative if the filter keeps more noise than they have.
- The unfiltered ranking obeys clearance if the settings switch it on, as everything does. Of its
  first k, those that fit the context budget count, as in a prompt.

`evaluate` gathers each query once and replays it: `gather_all` has the effects, `score` is pure, so
a tuner gathers once and scores many settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import fmean

import numpy as np

from ragfilter.answer.context import fits
from ragfilter.engine.backends import Backends
from ragfilter.engine.replay import replay, unfiltered
from ragfilter.engine.retrieve import run
from ragfilter.evaluate.beir import Labels, Qrels, Queries
from ragfilter.evaluate.crossval import FOLDS, choose, folds_of
from ragfilter.evaluate.metrics import (
    Scores,
    f1_at_most,
    mean_of,
    noise_reduction,
    precision_recall_f1,
    relevant_of,
    unlabelled_of,
)
from ragfilter.evaluate.target import Target
from ragfilter.model import PUBLIC, Chunk, Hit, Pool, Status, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings

DEEPEST = 50
"""How far down the unfiltered ranking the best fixed k is looked for."""
PATIENT = {"quality.reranker_timeout_ms": 600_000}
"""Nobody is waiting for an answer here, so a late score is not a failure."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The ids kept for one query, in order, and their scores. `unlabelled` is how many have no
    label and count as irrelevant; `f1_most` is F1 if all of those were relevant."""

    ids: tuple[str, ...]
    relevant_kept: int
    scores: Scores
    unlabelled: int
    f1_most: float

    @property
    def kept(self) -> int:
        return len(self.ids)

    @property
    def irrelevant(self) -> int:
        return len(self.ids) - self.relevant_kept


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query. `lost` is how many relevant chunks the pool holds, the user may see, and the
    filter dropped, at any rank.

    `ranking` is the unfiltered order, at most `DEEPEST` ids, with None for a chunk that does not
    fit the context budget after those before it. `waiting`: a layer fell back
    (`Result.fell_back`).
    """

    id: str
    query: str
    labels: Mapping[str, int]
    unfiltered: Kept
    filtered: Kept
    lost: tuple[str, ...]
    ranking: tuple[str | None, ...]
    status: Status
    waiting: bool = False

    @property
    def relevant(self) -> frozenset[str]:
        return relevant_of(self.labels)

    @property
    def noise_reduction(self) -> float | None:
        return noise_reduction([(self.unfiltered.irrelevant, self.filtered.irrelevant)])


@dataclass(frozen=True, slots=True)
class Means:
    """Means over queries: scores between 0 and 1, and chunks kept. `unlabelled` is how many of
    these have no label; F1 is `f1_most` if all of those are relevant."""

    precision: float
    recall: float
    f1: float
    f1_most: float
    mean_kept: float
    unlabelled: float


@dataclass(frozen=True, slots=True)
class FixedK:
    """The k with the best mean F1 of the unfiltered first k, the smallest of several. The means are
    cross-validated: each query counts with the k that is best on the other folds."""

    k: int
    means: Means


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`k` is the unfiltered k (`retrieval.k`). `unlabelled` are the queries left out.
    `best_fixed_k` is None with one query, since nothing can be held out."""

    k: int
    rows: tuple[QueryRow, ...] = field(repr=False)
    unfiltered: Means
    filtered: Means
    best_fixed_k: FixedK | None
    noise_reduction: float | None
    unlabelled: tuple[str, ...] = ()


def evaluate(
    queries: Queries,
    qrels: Qrels,
    settings: Settings,
    backends: Backends,
    user: User = PUBLIC,
    *,
    progress: Progress | None = None,
) -> Evaluation:
    """Gather every labelled query and score it. `progress` is called with (queries done, all).

    Raises ValueError if no query has a label, and what `retrieve.run` raises.
    """
    labelled = Labels(queries, qrels).labelled
    pools = gather_all(labelled, settings, backends, user, progress=progress)
    unlabelled = tuple(i for i in queries if i not in qrels)
    return score(pools, qrels, settings, user, unlabelled=unlabelled)


def gather_all(
    queries: Queries,
    settings: Settings,
    backends: Backends,
    user: User = PUBLIC,
    *,
    progress: Progress | None = None,
) -> dict[str, Pool]:
    """The pool of every query, with all that `settings` need. Chunks in several pools are stored
    once."""
    chunks: dict[str, Chunk] = {}
    pools: dict[str, Pool] = {}
    patient = settings.with_values(PATIENT)
    for query_id, text in queries.items():
        pool = run(text, patient, backends, user, wide=True).pool
        hits = tuple(replace(h, chunk=chunks.setdefault(h.id, h.chunk)) for h in pool.hits)
        pools[query_id] = replace(pool, hits=hits)
        if progress is not None:
            progress(len(pools), len(queries))
    return pools


def score(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    user: User = PUBLIC,
    *,
    unlabelled: Sequence[str] = (),
) -> Evaluation:
    """Replay every pool under `settings` and score it. Pure. Raises ValueError without labels."""
    deep = settings.with_values({"retrieval.k": DEEPEST})
    rows = tuple(
        _row(i, pool, qrels[i], settings, deep, user) for i, pool in pools.items() if i in qrels
    )
    if not rows:
        raise ValueError("no query has a label")
    return Evaluation(
        k=settings.retrieval.k,
        rows=rows,
        unfiltered=_means([row.unfiltered for row in rows]),
        filtered=_means([row.filtered for row in rows]),
        best_fixed_k=best_fixed_k(rows),
        noise_reduction=noise_reduction(
            (row.unfiltered.irrelevant, row.filtered.irrelevant) for row in rows
        ),
        unlabelled=tuple(unlabelled),
    )


def best_fixed_k(rows: Sequence[QueryRow]) -> FixedK | None:
    """Find the best k from 1 to `DEEPEST` over the unfiltered rankings."""
    if len(rows) < 2:
        return None
    tried = [
        [kept_of(tuple(filter(None, row.ranking[: k + 1])), row.labels) for k in range(DEEPEST)]
        for row in rows
    ]
    f1 = np.array([[kept.scores.f1 for kept in row] for row in tried])
    held_out = Target().held_out({"f1": f1}, folds_of([row.query for row in rows], FOLDS))
    means = _means([row[k] for row, k in zip(tried, held_out, strict=True)])
    return FixedK(1 + choose(f1), means)


def kept_of(ids: tuple[str, ...], labels: Mapping[str, int]) -> Kept:
    """The kept ids with their scores against the labels."""
    relevant = relevant_of(labels)
    return Kept(
        ids=ids,
        relevant_kept=len(relevant.intersection(ids)),
        scores=precision_recall_f1(ids, relevant),
        unlabelled=len(unlabelled_of(ids, labels)),
        f1_most=f1_at_most(ids, labels),
    )


def _row(
    query_id: str,
    pool: Pool,
    labels: Mapping[str, int],
    settings: Settings,
    deep: Settings,
    user: User,
) -> QueryRow:
    relevant = relevant_of(labels)
    result = replay(pool, settings, user)
    first = _fitting(unfiltered(pool, settings, user), settings)
    ranking = tuple(islice(unfiltered(pool, deep, user), DEEPEST))
    kept = tuple(hit.id for hit in result.kept)
    seen = result.user.sees
    return QueryRow(
        id=query_id,
        query=pool.query,
        labels=labels,
        unfiltered=kept_of(tuple(filter(None, first)), labels),
        filtered=kept_of(kept, labels),
        lost=tuple(h.id for h in result.hits if h.id in relevant - {*kept} and seen(h.chunk)),
        ranking=_fitting(ranking, settings),
        status=result.status,
        waiting=result.fell_back,
    )


def _fitting(hits: Sequence[Hit], settings: Settings) -> tuple[str | None, ...]:
    """The ids of the hits, with None for those that do not fit the prompt."""
    fitting = fits(hits, settings.context.max_context_tokens)[0]
    return tuple(hit.id if fit else None for hit, fit in zip(hits, fitting, strict=True))


def _means(sides: Sequence[Kept]) -> Means:
    scores = mean_of([side.scores for side in sides])
    assert scores is not None
    return Means(
        precision=scores.precision,
        recall=scores.recall,
        f1=scores.f1,
        f1_most=fmean(side.f1_most for side in sides),
        mean_kept=fmean(side.kept for side in sides),
        unlabelled=fmean(side.unlabelled for side in sides),
    )
