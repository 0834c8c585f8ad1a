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
from dataclasses import dataclass, fields, replace
from itertools import compress
from statistics import fmean

from ragfilter.answer.context import fits
from ragfilter.engine.replay import replay, unfiltered
from ragfilter.engine.retrieve import run
from ragfilter.engine.search import Backends
from ragfilter.evaluate.beir import Labels, Qrels, Queries
from ragfilter.evaluate.crossval import FOLDS, folds_of
from ragfilter.evaluate.metrics import Scores, noise_reduction, precision_recall_f1, relevant_of
from ragfilter.evaluate.prefixes import best_fixed_k, prefixes_of_pools
from ragfilter.layers.clearance import visible
from ragfilter.model import Chunk, Pool, Status, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings
from ragfilter.text.numbers import counted

PATIENT = {"quality.reranker_timeout_ms": 600_000}
"""Nobody is waiting for an answer here, so a late score is not a failure."""


@dataclass(frozen=True, slots=True)
class KeptChunks:
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
    filter dropped, at any rank. `waiting`: a layer fell back (`Result.fell_back`).
    """

    id: str
    query: str
    labels: Mapping[str, int]
    unfiltered: KeptChunks
    filtered: KeptChunks
    lost: tuple[str, ...]
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
    rows: tuple[QueryRow, ...]
    unfiltered: Means
    filtered: Means
    best_fixed_k: FixedK | None
    noise_reduction: float | None
    unlabelled: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<Evaluation: {counted(len(self.rows), 'query')}, F1 {self.filtered.f1:.3f}, "
            f"unfiltered {self.unfiltered.f1:.3f}>"
        )


def evaluate(
    queries: Queries,
    qrels: Qrels,
    settings: Settings,
    backends: Backends,
    user: User | None = None,
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
    user: User | None = None,
    *,
    progress: Progress | None = None,
) -> dict[str, Pool]:
    """The pool of every query as `user` sees it, with all that `settings` need. Chunks in several
    pools are stored once."""
    chunks: dict[str, Chunk] = {}
    pools: dict[str, Pool] = {}
    patient = settings.with_values(PATIENT)
    for query_id, text in queries.items():
        result = run(text, patient, backends, user, wide=True)
        pool = visible(result.pool, result.user)
        hits = tuple(replace(h, chunk=chunks.setdefault(h.id, h.chunk)) for h in pool.hits)
        pools[query_id] = replace(pool, hits=hits)
        if progress is not None:
            progress(len(pools), len(queries))
    return pools


def score(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    user: User | None = None,
    *,
    unlabelled: Sequence[str] = (),
) -> Evaluation:
    """Replay every pool under `settings` and score it. Pure. Raises ValueError without labels."""
    pools = {i: pool for i, pool in pools.items() if i in qrels}
    rows = tuple(_row(i, pool, qrels[i], settings, user) for i, pool in pools.items())
    if not rows:
        raise ValueError("no query has a label")
    return Evaluation(
        k=settings.retrieval.k,
        rows=rows,
        unfiltered=means_of([row.unfiltered for row in rows]),
        filtered=means_of([row.filtered for row in rows]),
        best_fixed_k=_fixed_k(pools, qrels, settings, user),
        noise_reduction=noise_reduction(
            (row.unfiltered.irrelevant, row.filtered.irrelevant) for row in rows
        ),
        unlabelled=tuple(unlabelled),
    )


def _fixed_k(
    pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User | None
) -> FixedK | None:
    if len(pools) < 2:
        return None
    folds = folds_of([pool.query for pool in pools.values()], FOLDS)
    k, fixed = best_fixed_k(prefixes_of_pools(pools, qrels, settings, user), folds)
    found = {**fixed, "mean_kept": fixed["kept"]}
    return FixedK(k, Means(**{each.name: fmean(found[each.name]) for each in fields(Means)}))


def kept_of(ids: tuple[str, ...], labels: Mapping[str, int]) -> KeptChunks:
    """The kept ids with their scores against the labels."""
    relevant, unlabelled = relevant_of(labels), frozenset(ids) - labels.keys()
    return KeptChunks(
        ids=ids,
        relevant_kept=len(relevant.intersection(ids)),
        scores=precision_recall_f1(ids, relevant),
        unlabelled=len(unlabelled),
        f1_most=precision_recall_f1(ids, relevant | unlabelled).f1,
    )


def means_of(sides: Sequence[KeptChunks]) -> Means:
    """The means of at least one query."""
    return Means(
        precision=fmean(side.scores.precision for side in sides),
        recall=fmean(side.scores.recall for side in sides),
        f1=fmean(side.scores.f1 for side in sides),
        f1_most=fmean(side.f1_most for side in sides),
        mean_kept=fmean(side.kept for side in sides),
        unlabelled=fmean(side.unlabelled for side in sides),
    )


def _row(
    query_id: str, pool: Pool, labels: Mapping[str, int], settings: Settings, user: User | None
) -> QueryRow:
    relevant = relevant_of(labels)
    result = replay(pool, settings, user)
    first = unfiltered(pool, settings, user)
    fitting, _ = fits(first, settings.context.max_context_tokens)
    kept = tuple(hit.id for hit in result.kept)
    seen = result.user.sees
    return QueryRow(
        id=query_id,
        query=pool.query,
        labels=labels,
        unfiltered=kept_of(tuple(hit.id for hit in compress(first, fitting)), labels),
        filtered=kept_of(kept, labels),
        lost=tuple(h.id for h in result.hits if h.id in relevant - {*kept} and seen(h.chunk)),
        status=result.status,
        waiting=result.fell_back,
    )
