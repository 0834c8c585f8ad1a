"""One set of settings over labelled queries, beside the unfiltered search: `eval`, `gate` and
`rf.measure`. A view of `evaluate.frame`.

`metrics` and `measure` describe the conventions. Means are over queries. Noise reduction is
1 − irrelevant kept / irrelevant in the unfiltered first k; over several queries the chunks are
counted together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any

from ragfilter.engine.search import Backends
from ragfilter.evaluate.frame import (
    Row,
    best_k,
    by_variant,
    cells,
    frame,
    noise_reduction,
    with_bounds,
)
from ragfilter.evaluate.labelled_queries import Labels, Qrels, Queries
from ragfilter.evaluate.measure import QueryRecord, count, measure
from ragfilter.evaluate.variants import CURRENT, FIXED, UNFILTERED, filtered_and_plain
from ragfilter.model import Pool, Status, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings
from ragfilter.text.numbers import counted


@dataclass(frozen=True, slots=True)
class KeptChunks:
    """What is kept for one query: how many chunks, how many of them relevant, and their scores.
    `unlabelled` is how many have no label and count as irrelevant; `f1_most` is F1 if all of those
    were relevant. `ids` are in order."""

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
    """One query with `n_relevant` relevant chunks. `lost` are those that the pool holds, the user
    may see, and the filter dropped, at any rank. `waiting`: a layer fell back."""

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
    `best_fixed_k` is None with one query, since nothing can be held out. `records` belong to
    the settings and of the unfiltered search."""

    k: int
    rows: tuple[QueryRow, ...]
    unfiltered: Means
    filtered: Means
    best_fixed_k: FixedK | None
    noise_reduction: float | None
    unlabelled: tuple[str, ...]
    records: tuple[QueryRecord, ...]

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
    """Measure every labelled query. `progress` is called with (queries done, all).

    Raises ValueError if no query has a label, and what `measure` raises.
    """
    labels, records = Labels(queries, qrels), list[QueryRecord]()
    total = len(labels.labelled)
    if total:
        measured = measure(labels, filtered_and_plain(settings), backends, user)
        for done, of_query in enumerate(measured, start=1):
            records += of_query
            if progress is not None:
                progress(done, total)
    return to_evaluation(records, settings.retrieval.k, [i for i in queries if i not in qrels])


def score(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    user: User | None = None,
    *,
    unlabelled: Sequence[str] = (),
) -> Evaluation:
    """Replay every pool under `settings` and score it. Pure. Raises ValueError without labels."""
    compared = filtered_and_plain(settings)
    records = [
        record
        for i, pool in pools.items()
        if i in qrels
        for record in count(i, pool, qrels[i], compared, user)
    ]
    return to_evaluation(records, settings.retrieval.k, unlabelled)


def to_evaluation(
    records: Sequence[QueryRecord], k: int, unlabelled: Sequence[str] = ()
) -> Evaluation:
    """The evaluation of records of `filtered_and_plain`. Raises ValueError without any."""
    if not records:
        raise ValueError("no query has a label")
    table = frame(with_bounds(records), by="query")
    sides = {name: cells(rows) for name, rows in by_variant(table).items()}
    by_name = {(record.id, record.variant): record for record in records}
    best = best_k(records)
    return Evaluation(
        k=k,
        rows=tuple(
            _row(by_name[own["id"], CURRENT], own, by_name[own["id"], UNFILTERED], plain)
            for own, plain in zip(sides[CURRENT], sides[UNFILTERED], strict=True)
        ),
        unfiltered=_means(sides[UNFILTERED]),
        filtered=_means(sides[CURRENT]),
        best_fixed_k=None if best is None else FixedK(best, _means(sides[FIXED])),
        noise_reduction=noise_reduction(table[table["variant"] == CURRENT]),
        unlabelled=tuple(unlabelled),
        records=tuple(records),
    )


def document(evaluation: Evaluation) -> dict[str, Any]:
    """The document of `eval --json` as plain values, without the collection and profile."""
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


def _row(own: QueryRecord, figures: Row, plain: QueryRecord, plain_figures: Row) -> QueryRow:
    return QueryRow(
        own.id, own.query, own.relevant, _kept(plain, plain_figures), _kept(own, figures),
        None if own.noise == 0 else 1 - (own.kept - own.found) / own.noise,
        own.lost_ids, own.status, own.waiting,
    )  # fmt: skip


def _kept(record: QueryRecord, figures: Row) -> KeptChunks:
    return KeptChunks(
        record.kept, record.found, figures["precision"], figures["recall"], figures["f1"],
        record.unlabelled, figures["f1_most"], record.ids,
    )  # fmt: skip


def _means(rows: Iterable[Row]) -> Means:
    # Not the mean of NumPy, whose last digit depends on the order of its sums.
    each = [*rows]
    return Means(**{
        field.name: fmean(row[field.name.removeprefix("mean_")] for row in each)
        for field in fields(Means)
    })  # fmt: skip
