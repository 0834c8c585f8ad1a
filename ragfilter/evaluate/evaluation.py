"""One set of settings measured over labelled queries, compared with the unfiltered search: `eval` and `gate`, and
`rf.measure`, `rf.tune` and `rf.recalibrate` for a caller's existing results, without new searches. A view of `frame`.

`metrics` and `query_records` describe the conventions. Means are over queries. Noise reduction is 1 − irrelevant kept /
irrelevant in the unfiltered first k, with the chunks of all queries counted together."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from operator import index
from typing import TYPE_CHECKING, Any

from ragfilter.engine.gather import Backends
from ragfilter.engine.replay import replay
from ragfilter.errors import InputError
from ragfilter.evaluate import query_records, tuning, wording
from ragfilter.evaluate.crossval import read_target
from ragfilter.evaluate.frame import Row, best_k, cells, rows
from ragfilter.evaluate.labelled_queries import Labels, Qrels, Queries, labels_version, missing
from ragfilter.evaluate.learning import DEPTH, Provenance
from ragfilter.evaluate.metrics import Counts, figures
from ragfilter.evaluate.query_records import QueryRecord, records_of
from ragfilter.evaluate.recalibrate import start
from ragfilter.evaluate.tuning import Tuning, wide_settings
from ragfilter.evaluate.variants import CURRENT, FIXED, UNFILTERED, filtered_and_plain
from ragfilter.model import Pool, PoolResult, Status, User, undecided
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)

_SCORES = ("precision", "recall", "f1", "f1_most")


@dataclass(frozen=True, slots=True)
class KeptChunks:
    """The chunks kept for one query: how many, how many of them relevant, and their scores. `unlabelled` is how many
    have no label and count as irrelevant; `f1_most` is F1 if all of them were relevant. `ids` are in order."""

    kept: int
    relevant_kept: int
    precision: float
    recall: float
    f1: float
    unlabelled: int
    f1_most: float
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query with `n_relevant` relevant chunks. `lost` are relevant chunks in the pool, at any
    rank, that the user can see and the filter dropped. `waiting`: a layer fell back."""

    id: str
    query: str
    n_relevant: int
    unfiltered: KeptChunks
    filtered: KeptChunks
    noise_reduction: float | None
    lost: tuple[str, ...]
    status: Status
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class Means:
    """Means over queries: scores between 0 and 1, and the number of kept chunks. `unlabelled` is
    how many of them have no label; `f1_most` is F1 if all of these were relevant."""

    precision: float
    recall: float
    f1: float
    f1_most: float
    mean_kept: float
    unlabelled: float


@dataclass(frozen=True, slots=True)
class FixedK:
    """The k whose unfiltered first k have the best mean F1, the smallest one if tied. The means are
    cross-validated: each query counts with the k that is best on the other folds."""

    k: int
    means: Means


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`k` is the unfiltered k (`retrieval.k`). `unlabelled` are the queries left out. `best_fixed_k` is None with one
    query, since nothing can be held out. `records` belong to the settings and to the unfiltered search, and `table` has
    their `frame.rows`."""

    k: int
    rows: tuple[QueryRow, ...]
    unfiltered: Means
    filtered: Means
    best_fixed_k: FixedK | None
    noise_reduction: float | None
    unlabelled: tuple[str, ...]
    records: tuple[QueryRecord, ...]
    table: pd.DataFrame = field(compare=False)

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
    """Measure every labelled query. `progress` is called with (queries done, all). Raises ValueError if no query has a
    label, and what `measure` raises."""
    labels, compared = Labels(queries, qrels), filtered_and_plain(settings)
    measured = query_records.measure(labels, compared, backends, user, progress=progress) if labels.labelled else ()
    return to_evaluation([*measured], settings, [i for i in queries if i not in qrels])


def score(pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User | None = None) -> Evaluation:
    """Replay every labelled pool under `settings` and score it. Pure. Raises ValueError without labels."""
    compared = filtered_and_plain(settings)
    measured = (records_of(i, pool, qrels[i], compared, user) for i, pool in pools.items() if i in qrels)
    return to_evaluation([*measured], settings, [i for i in pools if i not in qrels])


def to_evaluation(
    measured: Sequence[tuple[QueryRecord, ...]], settings: Settings, unlabelled: Sequence[str]
) -> Evaluation:
    """Evaluate each query's records of `filtered_and_plain(settings)`. Raises ValueError if there are none."""
    if not measured:
        raise ValueError("no query has a label")
    records = tuple(chain.from_iterable(measured))
    table, best = rows(records, filtered_and_plain(settings)), best_k(records)
    means = {row["variant"]: row for row in cells(table)}
    return Evaluation(
        k=settings.retrieval.k,
        rows=tuple(_row(*pair) for pair in measured),
        unfiltered=_means(means[UNFILTERED]),
        filtered=_means(means[CURRENT]),
        best_fixed_k=None if best is None else FixedK(best, _means(means[FIXED])),
        noise_reduction=means[CURRENT]["noise_reduction"],
        unlabelled=tuple(unlabelled),
        records=records,
        table=table,
    )


def document(evaluation: Evaluation) -> dict[str, Any]:
    """The JSON document of `eval --json` as plain values, without the collection and profile."""
    best, queries = evaluation.best_fixed_k, [asdict(row) for row in evaluation.rows]
    for query in queries:
        del query["unfiltered"]["ids"], query["waiting"]
    return {
        "k": evaluation.k,
        "queries": len(queries),
        "unfiltered": asdict(evaluation.unfiltered),
        "filtered": asdict(evaluation.filtered),
        "best_fixed_k": best and {"k": best.k, **asdict(best.means)},
        "noise_reduction": evaluation.noise_reduction,
        "lost": sum(len(row.lost) for row in evaluation.rows),
        "waiting": sum(row.waiting for row in evaluation.rows),
        "unlabelled": list(evaluation.unlabelled),
        "per_query": queries,
    }


def _row(own: QueryRecord, plain: QueryRecord) -> QueryRow:
    reduction = 1 - (own.kept - own.found) / own.noise if own.noise else None
    kept = _kept(plain), _kept(own)
    return QueryRow(own.id, own.query, own.relevant, *kept, reduction, own.lost_ids, own.status, own.waiting)


def _kept(record: QueryRecord) -> KeptChunks:
    values = figures(Counts(record.kept, record.found, record.unlabelled), record.relevant)
    scores = {name: float(values[name]) for name in _SCORES}
    return KeptChunks(record.kept, record.found, unlabelled=record.unlabelled, ids=record.ids, **scores)


def _means(row: Row) -> Means:
    return Means(mean_kept=row["kept"], unlabelled=row["unlabelled"], **{name: row[name] for name in _SCORES})


def measure(results: Mapping[str, PoolResult], qrels: Qrels) -> Evaluation:
    """Measure results by query id: precision, recall and F1, compared with the unfiltered order and its best fixed k
    (cross-validated; None for a single query). `qrels` maps query id to chunk id to grade; 1 or more is relevant.

    Queries without a label are left out and named. The unfiltered order is as long as a result's hits. Logs a warning
    if the settings may have been tuned on these labels. Raises InputError if no query has a label, nothing is labelled
    relevant, no labelled chunk is among the hits, or the results were made with different settings or for different
    users."""
    one, labels = _checked(results, qrels, least=1)
    version = labels_version(labels)
    if caveat := wording.in_sample(one.settings, version, one.pool.collection):
        log.warning("%s", caveat)
    return score({i: result.pool for i, result in results.items()}, qrels, one.settings, one.user)


def tune(
    results: Mapping[str, PoolResult], qrels: Qrels, *, measure: str = "f1", folds: int = 5, rerank: bool = False
) -> Tuning:
    """Find the best settings for these labels and measure them on held-out queries, like ``ragfilter tune``. `measure`
    is ``f1``, ``f2``, or ``tokens@0.8`` for the fewest tokens at a recall of 0.8. `rerank` also tries settings that
    always rerank; the results' first 50 hits must then have rerank scores.

    Use `tuned.settings` for a new `Filter`. Raises InputError as `measure` does, for fewer than two labelled queries or
    folds, if the judge is on, and with `rerank` if rerank scores are missing."""
    return _tuned(results, qrels, measure, folds, rerank=rerank)


def recalibrate(
    results: Mapping[str, PoolResult],
    qrels: Qrels,
    old: Settings,
    *,
    profile: str = "full",
    measure: str = "f1",
    folds: int = 5,
    rerank: bool = False,
) -> Tuning:
    """Tune again after a change of model, chunking or corpus, like ``ragfilter recalibrate``. Make `results` after the
    change; `old` are the settings in use, which started from `profile`. Check ``loses_at_most(0.02)`` before you
    replace them with ``tuned.settings``. Raises as `tune` does."""
    return _tuned(results, qrels, measure, folds, rerank=rerank, old=old, profile=profile)


def _tuned(
    results: Mapping[str, PoolResult],
    qrels: Qrels,
    measure: str,
    folds: int,
    *,
    rerank: bool,
    old: Settings | None = None,
    profile: str = "",
) -> Tuning:
    """Tune on the labelled results, from their settings or, like `recalibrate`, from `profile`. Raises InputError."""
    if folds < 2:
        raise InputError(f"folds is {folds}.", remedy="Pass at least 2, to hold some queries out.")
    one, labels = _checked(results, qrels, least=2)
    tuning.check_tunable(one.settings, len(labels.qrels))
    pools = {i: result.pool for i, result in results.items() if i in qrels}
    if rerank:
        wide = wide_settings(one.settings, rerank=True)
        lacking = [i for i, pool in pools.items() if undecided(replay(pool, wide, one.user).needs)]
        if lacking:
            raise InputError(
                f"Rerank scores of the first {DEPTH} hits are missing, as for the query {lacking[0]!r}.",
                remedy="Make the results with a reranker, quality.enabled = true, quality.mode = "
                f"always, and quality.max_top_k and quality.reranker_top_k = {DEPTH}, or pass "
                "rerank=False.",
            )
    begin = one.settings if old is None else start(old, profile)
    return tuning.tune(
        pools,
        labels.qrels,
        begin,
        one.user,
        target=read_target(measure),
        folds=folds,
        rerank=rerank,
        replaces=old,
        provenance=Provenance.of(labels),
    )


def _checked(results: Mapping[str, PoolResult], qrels: Qrels, *, least: int) -> tuple[PoolResult, Labels]:
    """Check that all results share settings and user. Returns one, and the queries' labels. Raises InputError."""
    labelled = {i: result for i, result in results.items() if i in qrels}
    if len(labelled) < least:
        raise InputError(
            f"Only {len(labelled)} of these queries have labels.",
            remedy=f"Label at least {least}, and use the same query ids for results and labels.",
        )
    texts = {i: result.pool.query for i, result in labelled.items()}
    labels = Labels(texts, {i: _grades(i, qrels[i]) for i in labelled})
    labels.check_relevant()
    for caveat in wording.about_labels(labels):
        log.warning("%s", caveat)
    ids = (chunk for grades in labels.qrels.values() for chunk in grades)
    missing(ids, {hit.id for result in labelled.values() for hit in result.pool.hits})
    first = next(iter(labelled.values()))
    if any((r.settings, r.user) != (first.settings, first.user) for r in results.values()):
        raise InputError(
            "The results were made with different settings or for different users.",
            remedy="Measure the results of one filter and one user at a time.",
        )
    return first, labels


def _grades(query_id: str, labels: object) -> dict[str, int]:
    """Chunk id → grade, with NumPy integers converted to Python's."""
    try:
        return {str(i): index(grade) for i, grade in labels.items()}  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        raise InputError(
            f"The labels of {query_id!r} are {labels!r}.",
            remedy="Map chunk ids to whole-number grades, such as {'c1': 2, 'c2': 0}.",
        ) from None
