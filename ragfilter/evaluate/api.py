"""Measures and tunes over results that a caller already has: from a `Filter` over the hits of
any store, or from a workspace's search. No query is asked again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from operator import index
from pathlib import Path

from ragfilter.engine.replay import replay
from ragfilter.errors import InputError
from ragfilter.evaluate import tune as tuning
from ragfilter.evaluate import wording
from ragfilter.evaluate.crossval import read_target
from ragfilter.evaluate.evaluation import Evaluation, score
from ragfilter.evaluate.labelled_queries import Labels, Qrels, labels_version, missing
from ragfilter.evaluate.learning import DEPTH, Provenance
from ragfilter.evaluate.query_files import read
from ragfilter.evaluate.recalibrate import start
from ragfilter.evaluate.tune import Tuning, gathering
from ragfilter.model import Pool, PoolResult, undecided
from ragfilter.settings.schema import Settings

log = logging.getLogger(__name__)


def read_labels(queries: str | Path, qrels: str | Path) -> Labels:
    """Labelled queries, their texts and labels by id: queries in BEIR's form, CSV, or one a line in
    a .txt file; qrels in BEIR's or TREC's form. Raises InputError that names file and line."""
    return read(Path(queries), Path(qrels))


def measure(results: Mapping[str, PoolResult], qrels: Qrels) -> Evaluation:
    """Measure results by query id: precision, recall and F1, next to the unfiltered order and its
    best fixed k, which is cross-validated, and None with one query. `qrels` are the labels: query
    id to chunk id to grade; 1 or more is relevant.

    Queries without a label are left out and named. The unfiltered order goes as far as the hits of
    a result. Logs a warning if the settings may have been tuned on these labels. Raises InputError
    if no query has a label, nothing is labelled relevant, none of the labelled chunks is among the
    hits, or the results were made with different settings or for different users.
    """
    one, labels = _checked(results, qrels, least=1)
    version = labels_version(labels)
    if caveat := wording.in_sample(one.settings, version, one.pool.collection):
        log.warning("%s", caveat)
    pools = {i: result.pool for i, result in results.items()}
    bare = tuple(i for i in results if i not in qrels)
    return score(pools, qrels, one.settings, one.user, unlabelled=bare)


def tune(
    results: Mapping[str, PoolResult],
    qrels: Qrels,
    *,
    measure: str = "f1",
    folds: int = 5,
    rerank: bool = False,
) -> Tuning:
    """Find the settings that these labels justify, and measure them on held-out queries: the
    library's ``ragfilter tune``. `measure` is ``f1``, ``f2``, or ``tokens@0.8`` for the fewest
    tokens at a recall of 0.8. `rerank` also tries settings that always rerank, over the rerank
    scores that the results' first 50 hits must then have.

    Use `tuned.settings` for a new `Filter`. Raises InputError as `measure` does, for fewer than two
    labelled queries or folds, if the judge is on, and with `rerank` if rerank scores are missing.
    """
    one, labels, pools = _tunable(results, qrels, folds, rerank=rerank)
    return tuning.tune(
        pools, labels.qrels, one.settings, one.user, target=read_target(measure), folds=folds,
        rerank=rerank, provenance=Provenance.of(labels),
    )  # fmt: skip


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
    """Derive settings anew after a change of model, chunking or corpus: the library's
    ``ragfilter recalibrate``. `results` were made after it, and `old` are the settings in use,
    which started from `profile`. Ask ``loses_at_most(0.02)`` before ``tuned.settings`` replace
    them. Raises as `tune` does."""
    one, labels, pools = _tunable(results, qrels, folds, rerank=rerank)
    return tuning.tune(
        pools, labels.qrels, start(old, profile), one.user, target=read_target(measure),
        folds=folds, rerank=rerank, replaces=old, provenance=Provenance.of(labels),
    )  # fmt: skip


def _tunable(
    results: Mapping[str, PoolResult], qrels: Qrels, folds: int, *, rerank: bool
) -> tuple[PoolResult, Labels, dict[str, Pool]]:
    """Any of the results, the labels of these queries and their pools. Raises InputError."""
    if folds < 2:
        raise InputError(f"folds is {folds}.", remedy="Pass at least 2, to hold some queries out.")
    one, labels = _checked(results, qrels, least=2)
    tuning.check_tunable(one.settings, len(labels.qrels))
    pools = {i: result.pool for i, result in results.items() if i in qrels}
    if rerank:
        wide = gathering(one.settings, rerank=True)
        lacking = [i for i, pool in pools.items() if undecided(replay(pool, wide, one.user).needs)]
        if lacking:
            raise InputError(
                f"Rerank scores of the first {DEPTH} hits are missing, as for the query "
                f"{lacking[0]!r}.",
                remedy="Make the results with a reranker, quality.enabled = true, quality.mode = "
                f"always, and quality.max_top_k and quality.reranker_top_k = {DEPTH}, or pass "
                "rerank=False.",
            )
    return one, labels, pools


def _checked(
    results: Mapping[str, PoolResult], qrels: Qrels, *, least: int
) -> tuple[PoolResult, Labels]:
    """Any of the results, which share settings and user, and the labels of these queries. Raises
    InputError."""
    labelled = [result for i, result in results.items() if i in qrels]
    if len(labelled) < least:
        raise InputError(
            f"Only {len(labelled)} of these queries have labels.",
            remedy=f"Label at least {least}, and use the same query ids for results and labels.",
        )
    texts = {i: result.pool.query for i, result in results.items() if i in qrels}
    labels = Labels(texts, {i: _grades(i, qrels[i]) for i in texts})
    labels.check_relevant()
    for caveat in wording.about_labels(labels):
        log.warning("%s", caveat)
    ids = (chunk for i in results for chunk in qrels.get(i, ()))
    missing(ids, {hit.id for result in labelled for hit in result.pool.hits})
    first = labelled[0]
    if any((r.settings, r.user) != (first.settings, first.user) for r in results.values()):
        raise InputError(
            "The results were made with different settings or for different users.",
            remedy="Measure the results of one filter and one user at a time.",
        )
    return first, labels


def _grades(query_id: str, given: object) -> dict[str, int]:
    """Chunk id to grade, NumPy's whole numbers as Python's."""
    try:
        return {str(i): index(grade) for i, grade in given.items()}  # type: ignore[attr-defined]
    except (AttributeError, TypeError):
        raise InputError(
            f"The labels of {query_id!r} are {given!r}.",
            remedy="Pass chunk id to whole-number grade, such as {'c1': 2, 'c2': 0}.",
        ) from None
