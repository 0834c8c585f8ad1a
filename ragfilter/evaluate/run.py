"""The filtered result beside the unfiltered first k, over labelled queries.

Source: Adaptive Filtering Algorithm, "Evaluation Metrics"; docs/design.md#json (`eval`).

Conventions:

- Relevant means a label of 1 or more. Queries without labels are left out.
- Means are over queries. Nothing kept counts as precision 0, recall 0, F1 0.
- Noise reduction is 1 − irrelevant kept / irrelevant in the unfiltered first k; over several
  queries the chunks are counted together. It is None where the first k hold nothing irrelevant,
  and negative where the filter keeps more noise than they have.
- The unfiltered ranking obeys clearance where the settings switch it on, as everything does.

`gather_all` has the effects; `score` is pure, so a tuner gathers once and scores many settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING, Any

from ragfilter.engine.backends import Backends
from ragfilter.engine.replay import replay, unfiltered
from ragfilter.engine.retrieve import run
from ragfilter.evaluate.beir import Qrels, Queries
from ragfilter.evaluate.metrics import Scores, precision_recall_f1
from ragfilter.extras import extra
from ragfilter.model import PUBLIC, Pool, Status, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings

if TYPE_CHECKING:
    import pandas as pd

DEEPEST = 50
"""How far down the unfiltered ranking the best fixed k is looked for."""


@dataclass(frozen=True, slots=True)
class Side:
    """One query's kept ids, in order, and how good they are."""

    ids: tuple[str, ...]
    relevant_kept: int
    scores: Scores

    @property
    def kept(self) -> int:
        return len(self.ids)

    @property
    def irrelevant(self) -> int:
        return len(self.ids) - self.relevant_kept


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query. `lost`: relevant chunks of the unfiltered first k that the filter dropped.

    `ranking` is the unfiltered order, at most `DEEPEST` ids. `waiting`: a layer lacked something
    (`Result.needs`) and fell back.
    """

    id: str
    query: str
    relevant: frozenset[str]
    unfiltered: Side
    filtered: Side
    lost: tuple[str, ...]
    ranking: tuple[str, ...]
    status: Status
    waiting: bool = False

    @property
    def noise_reduction(self) -> float | None:
        return _noise_reduction((self,))


@dataclass(frozen=True, slots=True)
class Means:
    """Means over queries: scores 0..1, and chunks kept."""

    precision: float
    recall: float
    f1: float
    mean_kept: float


@dataclass(frozen=True, slots=True)
class FixedK:
    """The k with the best mean F1 of the unfiltered first k, the smallest among equals."""

    k: int
    means: Means


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`k` is the unfiltered k (`retrieval.k`). `unlabelled` are the queries that were left out."""

    k: int
    rows: tuple[QueryRow, ...]
    unfiltered: Means
    filtered: Means
    best_fixed_k: FixedK
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

    Raises ValueError where no query has a label, and what `gather.run` raises.
    """
    labelled = {i: text for i, text in queries.items() if i in qrels}
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
    """The pool of every query, with all that `settings` need."""
    pools: dict[str, Pool] = {}
    for query_id, text in queries.items():
        pools[query_id] = run(text, settings, backends, user, wide=True).pool
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
        noise_reduction=_noise_reduction(rows),
        unlabelled=tuple(unlabelled),
    )


def best_fixed_k(rows: Sequence[QueryRow], *, deepest: int = DEEPEST) -> FixedK:
    """Sweep k from 1 to `deepest` (at most 50) over the unfiltered rankings of the same queries."""
    sweep = [
        FixedK(k, _means([_side(row.ranking[:k], row.relevant) for row in rows]))
        for k in range(1, min(deepest, DEEPEST) + 1)
    ]
    best = max(entry.means.f1 for entry in sweep)
    return next(entry for entry in sweep if entry.means.f1 >= best - 1e-12)


def frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row a query, figures only."""
    with extra("eval"):
        import pandas as pd

    return pd.DataFrame([_flat(row) for row in evaluation.rows])


def document(evaluation: Evaluation) -> dict[str, Any]:
    """What `eval --json` prints, without the collection and profile: plain values."""
    best = evaluation.best_fixed_k
    return {
        "k": evaluation.k,
        "queries": len(evaluation.rows),
        "unfiltered": asdict(evaluation.unfiltered),
        "filtered": asdict(evaluation.filtered),
        "best_fixed_k": {"k": best.k, **asdict(best.means)},
        "noise_reduction": evaluation.noise_reduction,
        "lost": sum(len(row.lost) for row in evaluation.rows),
        "waiting": sum(row.waiting for row in evaluation.rows),
        "unlabelled": list(evaluation.unlabelled),
        "per_query": [_document(row) for row in evaluation.rows],
    }


def _row(
    query_id: str,
    pool: Pool,
    labels: Mapping[str, int],
    settings: Settings,
    deep: Settings,
    user: User,
) -> QueryRow:
    relevant = frozenset(i for i, label in labels.items() if label > 0)
    result = replay(pool, settings, user)
    first = tuple(hit.id for hit in unfiltered(pool, settings, user))
    kept = tuple(hit.id for hit in result.kept)
    return QueryRow(
        id=query_id,
        query=pool.query,
        relevant=relevant,
        unfiltered=_side(first, relevant),
        filtered=_side(kept, relevant),
        lost=tuple(i for i in first if i in relevant and i not in kept),
        ranking=tuple(hit.id for hit in islice(unfiltered(pool, deep, user), DEEPEST)),
        status=result.status,
        waiting=bool(result.needs),
    )


def _side(ids: tuple[str, ...], relevant: frozenset[str]) -> Side:
    return Side(ids, len(relevant.intersection(ids)), precision_recall_f1(ids, relevant))


def _means(sides: Sequence[Side]) -> Means:
    return Means(
        precision=fmean(side.scores.precision for side in sides),
        recall=fmean(side.scores.recall for side in sides),
        f1=fmean(side.scores.f1 for side in sides),
        mean_kept=fmean(side.kept for side in sides),
    )


def _noise_reduction(rows: Sequence[QueryRow]) -> float | None:
    before = sum(row.unfiltered.irrelevant for row in rows)
    after = sum(row.filtered.irrelevant for row in rows)
    return None if before == 0 else 1 - after / before


def _flat(row: QueryRow) -> dict[str, Any]:
    """A row for a table: figures only."""
    values: dict[str, Any] = {
        "id": row.id,
        "n_relevant": len(row.relevant),
        "status": row.status,
    }
    for name, side in (("unfiltered", row.unfiltered), ("filtered", row.filtered)):
        values |= {
            f"{name}_kept": side.kept,
            f"{name}_relevant": side.relevant_kept,
            f"{name}_precision": side.scores.precision,
            f"{name}_recall": side.scores.recall,
            f"{name}_f1": side.scores.f1,
        }
    values["noise_reduction"] = row.noise_reduction
    values["lost"] = len(row.lost)
    return values


def _document(row: QueryRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "query": row.query,
        "n_relevant": len(row.relevant),
        "unfiltered": _side_document(row.unfiltered),
        "filtered": _side_document(row.filtered) | {"ids": list(row.filtered.ids)},
        "noise_reduction": row.noise_reduction,
        "lost": list(row.lost),
        "status": row.status,
    }


def _side_document(side: Side) -> dict[str, Any]:
    return {"kept": side.kept, "relevant_kept": side.relevant_kept, **asdict(side.scores)}
