"""Many settings over the same pools: what each keeps, and how good that is. Pure; numpy.

The layers before the cutoff are replayed once for all settings that share them. Those after it are
replayed once for each number of hits that the cutoff keeps. So a thousand cutoffs cost a few dozen
replays per query, and keep exactly the chunks that `replay` keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from ragfilter.answer.context import fits
from ragfilter.engine.replay import replay, unfiltered
from ragfilter.errors import InputError
from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.crossval import Table
from ragfilter.evaluate.metrics import (
    Scores,
    f1_at_most,
    precision_recall_f1,
    relevant_of,
    unlabelled_of,
)
from ragfilter.layers.cut import cut_hits
from ragfilter.layers.cutoff import Cutoff
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import PUBLIC, CutoffDetail, Hit, Pending, Pool, Result, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings

DEEPEST = 50
"""How far down the unfiltered ranking a fixed k is looked for."""
Plan = list[tuple[Settings, Cutoff]]
ALL = Cutoff(strategy="fixed", max_results=200, min_results=0)


class Outcome(NamedTuple):
    """What was kept of one pool: its scores, the number of chunks, and estimated tokens in a
    prompt. `unlabelled` is how many have no label and count as irrelevant; `f1_most` is F1 if all
    of those were relevant."""

    precision: float
    recall: float
    f1: float
    f2: float
    kept: float
    tokens: float
    unlabelled: float
    f1_most: float


FIGURES = Outcome._fields


def sweep(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Sequence[Settings],
    user: User = PUBLIC,
    *,
    progress: Progress | None = None,
    lacking: set[int] | None = None,
) -> dict[str, Table]:
    """Every figure, with a row for each pool and a column for each of `settings`. The columns for
    which a pool lacks rerank scores are added to `lacking`: another layer stands in there."""
    planned = plan(settings)
    table = []
    for query_id, pool in pools.items():
        labels = qrels[query_id]
        known: dict[tuple[str, ...], Outcome] = {}
        row = []
        for place, (hits, needs) in enumerate(kept(pool, planned, user)):
            if needs and lacking is not None:
                lacking.add(place)
            ids = tuple(hit.id for hit in hits)
            if ids not in known:
                budget = settings[place].context.max_context_tokens
                known[ids] = _outcome(hits, labels, budget)
            row.append(known[ids])
        table.append(row)
        if progress is not None:
            progress(len(table), len(pools))
    return _tables(table)


def prefixes(
    pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User = PUBLIC
) -> dict[str, Table]:
    """Every figure of the unfiltered first k that fit the prompt, with a column for each k from 1
    to `DEEPEST`."""
    deep = settings.with_values({"retrieval.k": DEEPEST})
    table = []
    for query_id, pool in pools.items():
        labels = qrels[query_id]
        ranking = unfiltered(pool, deep, user)
        deepest = max(len(ranking), 1)
        budget = settings.context.max_context_tokens
        fitting = fits(ranking, budget)[0]
        firsts = (list(compress(ranking[:k], fitting)) for k in range(1, deepest + 1))
        row = [_outcome(first, labels, budget) for first in firsts]
        table.append(row + row[-1:] * (DEEPEST - deepest))
    return _tables(table)


def nothing(qrels: Iterable[Mapping[str, int]]) -> dict[str, Table]:
    """Every figure if no chunk is kept, given the labels of each query: one column."""
    return _tables([[_outcome((), labels, 0)] for labels in qrels])


def plan(settings: Sequence[Settings]) -> Plan:
    """Split each setting into what it shares with others (as the same object) and its own
    cutoff."""
    shared: dict[Settings, Settings] = {}
    bases = (each.model_copy(update={"cutoff": ALL}) for each in settings)
    return [
        (shared.setdefault(base, base), each.cutoff)
        for base, each in zip(bases, settings, strict=True)
    ]


def kept(
    pool: Pool, planned: Plan, user: User = PUBLIC
) -> Iterator[tuple[tuple[Hit, ...], Sequence[Pending]]]:
    """What `replay` keeps of one pool with each of the planned settings, in this order, and what
    the pool lacks for it."""
    before: dict[int, tuple[CutoffDetail, int]] = {}
    behind: dict[tuple[int, int], Result] = {}
    for base, cutoff in planned:
        own = strategy(cutoff.strategy).weigh is not None
        if not cutoff.enabled or pool.space == "rank" or own:
            result = replay(pool, base.model_copy(update={"cutoff": cutoff}), user)
            yield result.kept, result.needs
            continue
        # Settings are compared by identity, since hashing them takes longer than a cut.
        key = id(base)
        if key not in before:
            trace = replay(pool, base, user).trace("cutoff")
            assert isinstance(trace.detail, CutoffDetail)
            before[key] = trace.detail, trace.count("pinned")
        detail, pinned = before[key]
        n = cut_hits(detail.values, cutoff, pinned=pinned, background=detail.background).kept
        if (key, n) not in behind:
            first = ALL.model_copy(update={"max_results": max(n, 1)})
            behind[key, n] = replay(pool, base.model_copy(update={"cutoff": first}), user)
        yield behind[key, n].kept, behind[key, n].needs


def check_reranked(pools: Iterable[Pool]) -> None:
    """Raise InputError if a reranker failed: its scores would be missing in some queries only."""
    failed = next((f.error for pool in pools for f in pool.failures), "")
    if failed:
        raise InputError(
            f"Reranking failed: {failed}",
            remedy="Make the results again, or set quality.reranker to none.",
        )


def _outcome(hits: Sequence[Hit], labels: Mapping[str, int], budget: int) -> Outcome:
    ids = [hit.id for hit in hits]
    scores = precision_recall_f1(ids, relevant_of(labels))
    unlabelled = len(unlabelled_of(ids, labels))
    most = f1_at_most(ids, labels) if unlabelled else scores.f1
    return Outcome(
        scores.precision, scores.recall, scores.f1, _f2(scores),
        len(ids), fits(hits, budget)[1], unlabelled, most,
    )  # fmt: skip


def _f2(scores: Scores) -> float:
    """The weighted harmonic mean in which recall counts twice as much as precision."""
    weighted = 4 * scores.precision + scores.recall
    return 5 * scores.precision * scores.recall / weighted if weighted else 0.0


def _tables(rows: Sequence[Sequence[Outcome]]) -> dict[str, Table]:
    table = np.array(rows, dtype=np.float64)
    return {name: table[..., at] for at, name in enumerate(FIGURES)}
