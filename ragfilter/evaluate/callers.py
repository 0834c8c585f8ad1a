"""What a caller's results are worth over labelled queries: those of a `Filter` over the hits of any
store, or of a workspace's search. Pure; no query is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragfilter.errors import InputError
from ragfilter.evaluate import beir, target
from ragfilter.evaluate import tune as tuning
from ragfilter.evaluate.beir import Labels, Qrels
from ragfilter.evaluate.run import Evaluation, score
from ragfilter.evaluate.tune import Tuning
from ragfilter.model import Result


def read_labels(queries: str | Path, qrels: str | Path) -> Labels:
    """Labelled queries in BEIR form (TREC's qrels too): their texts and labels by id.

    Raises InputError that names file and line.
    """
    return beir.read(Path(queries), Path(qrels))


def measure(results: Mapping[str, Result], qrels: Qrels) -> Evaluation:
    """Precision, recall and F1 of results by query id, beside the unfiltered order and its best
    fixed k. `qrels` are the labels: query id to chunk id to grade, 1 or more for relevant.

    Queries without a label are left out and named. The unfiltered order goes as far as the hits
    that a result was made of. Raises InputError where no query has a label, or the results were
    made with different settings or for different users.
    """
    one = _one(results, qrels, least=1)
    pools = {i: result.pool for i, result in results.items()}
    bare = tuple(i for i in results if i not in qrels)
    return score(pools, qrels, one.settings, one.user, unlabelled=bare)


def tune(
    results: Mapping[str, Result], qrels: Qrels, *, measure: str = "f1", folds: int = 5
) -> Tuning:
    """The settings that these labels justify, and what they are worth on queries held out: the
    library's `ragfilter tune`, without reranking anything. `measure` is ``f1``, ``f2``, or
    ``tokens@0.8`` for the fewest tokens at a recall of 0.8.

    `tuned.settings` are for a new `Filter`. Raises InputError as `measure` does, and for fewer than
    two labelled queries.
    """
    one = _one(results, qrels, least=2)
    pools = {i: result.pool for i, result in results.items() if i in qrels}
    aim = target.read(measure)
    return tuning.tune(pools, qrels, one.settings, one.user, target=aim, folds=folds, rerank=False)


def _one(results: Mapping[str, Result], qrels: Qrels, *, least: int) -> Result:
    """Any of the results; they share settings and user. Raises InputError."""
    labelled = [result for i, result in results.items() if i in qrels]
    if len(labelled) < least:
        raise InputError(
            f"Labels of {len(labelled)} of these queries are too few.",
            remedy=f"Label at least {least}, and pass results and labels by the same query ids.",
        )
    first = labelled[0]
    if any((r.settings, r.user) != (first.settings, first.user) for r in results.values()):
        raise InputError(
            "The results were made with different settings, or for different users.",
            remedy="Measure those of one filter and user at a time.",
        )
    return first
