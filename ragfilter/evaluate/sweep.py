"""Many settings over the same pools: what each keeps, and how good it is. Pure; numpy.

The layers before the cutoff are replayed once for all settings that share them. Those after it are replayed once for
each number of hits that the cutoff keeps. So a thousand cutoffs cost a few dozen replays per query, and still keep
exactly the chunks that `replay` keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from ragfilter.engine.replay import replay
from ragfilter.errors import InputError, extra
from ragfilter.evaluate.crossval import Tables
from ragfilter.evaluate.labelled_queries import Qrels, relevant_of
from ragfilter.evaluate.metrics import Counts, figures, precision_recall_f1
from ragfilter.evaluate.query_records import count
from ragfilter.layers.cutoff import cut_or_gap
from ragfilter.layers.strategies.strategy import strategy
from ragfilter.model import CutoffDetail, Hit, Need, Pool, PoolResult, User, undecided
from ragfilter.protocols import Progress
from ragfilter.settings.field import MAX_CHUNKS
from ragfilter.settings.schema import Cutoff, Settings

with extra("eval"):
    import pandas as pd

Plan = list[tuple[Settings, Cutoff]]
ALL = Cutoff(strategy="fixed", max_results=MAX_CHUNKS, min_results=0)


def sweep(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Sequence[Settings],
    user: User | None = None,
    *,
    progress: Progress | None = None,
    lacking: set[int] | None = None,
) -> Tables:
    """All figures, with a row for each pool and a column for each of `settings`. The columns for
    which a pool lacks rerank scores are added to `lacking`: there, the layer fell back."""
    planned = plan(settings)
    table = []
    for query_id, pool in pools.items():
        labels = qrels[query_id]
        known: dict[tuple[str, ...], Counts] = {}
        row = []
        for place, (hits, needs) in enumerate(kept(pool, planned, user)):
            if undecided(needs) and lacking is not None:
                lacking.add(place)
            ids = tuple(hit.id for hit in hits)
            if ids not in known:
                counts = count(hits, labels, settings[place])
                known[ids] = Counts(*(counts[name] for name in Counts._fields))
            row.append(known[ids])
        table.append(row)
        if progress is not None:
            progress(len(table), len(pools))
    relevant = [[len(relevant_of(qrels[i]))] for i in pools]
    return figures(Counts(*np.moveaxis(np.array(table), -1, 0)), relevant)


def plan(settings: Sequence[Settings]) -> Plan:
    """Split each of `settings` into the part that it shares with others (as one object) and its own cutoff."""
    shared: dict[Settings, Settings] = {}
    bases = (
        each.model_copy(
            update={"cutoff": ALL.model_copy(update={"score": each.cutoff.score, "limits": each.cutoff.limits})}
        )
        for each in settings
    )
    return [(shared.setdefault(base, base), each.cutoff) for base, each in zip(bases, settings, strict=True)]


def kept(pool: Pool, planned: Plan, user: User | None = None) -> Iterator[tuple[tuple[Hit, ...], Sequence[Need]]]:
    """Yield, for each of the planned settings, the hits that `replay` keeps, and what the pool lacks for it."""
    before: dict[int, tuple[CutoffDetail, int]] = {}
    behind: dict[tuple[int, int], PoolResult] = {}
    for base, cutoff in planned:
        # Settings are compared by identity, since hashing them takes longer than a cut.
        key = id(base)
        if key not in before:
            trace = replay(pool, base, user).trace("cutoff")
            assert isinstance(trace.detail, CutoffDetail)
            before[key] = trace.detail, trace.count("pinned")
        detail, pinned = before[key]
        has_values = strategy(cutoff.strategy).values_of is not None
        if not cutoff.enabled or has_values or detail.value_kind == "place":
            result = replay(pool, base.model_copy(update={"cutoff": cutoff}), user)
            yield result.kept, result.needs
            continue
        n = cut_or_gap(detail.values, cutoff, pinned=pinned, background=detail.background).kept
        if (key, n) not in behind:
            first = base.cutoff.model_copy(update={"max_results": max(n, 1)})
            behind[key, n] = replay(pool, base.model_copy(update={"cutoff": first}), user)
        yield behind[key, n].kept, behind[key, n].needs


def check_reranked(pools: Iterable[Pool]) -> None:
    """Raise InputError if a reranker failed: then only some queries would have its scores."""
    failed = next((f.error for pool in pools for f in pool.failures if f.kind == "rerank"), "")
    if failed:
        raise InputError(
            f"Reranking failed: {failed}", remedy="Make the results again, or set quality.reranker to none."
        )


def changes(
    pools: Mapping[str, Pool], qrels: Qrels, before: Settings, after: Settings, user: User | None = None
) -> pd.DataFrame:
    """The queries whose kept chunks change, sorted by the largest loss in F1 (``gain``) first: ``id``, how many chunks
    are kept ``before`` and ``after``, and how many relevant ones are ``lost`` and ``won``."""
    planned, changed = plan([before, after]), []
    for query_id, pool in pools.items():
        old, new = ({hit.id for hit in hits} for hits, _ in kept(pool, planned, user))
        if old != new:
            relevant = relevant_of(qrels[query_id])
            f1 = [precision_recall_f1(ids, relevant).f1 for ids in (old, new)]
            lost, won = len((old - new) & relevant), len((new - old) & relevant)
            changed.append((query_id, len(old), len(new), lost, won, f1[1] - f1[0]))
    table = pd.DataFrame(changed, columns=["id", "before", "after", "lost", "won", "gain"])
    return table.sort_values(["gain", "id"], ignore_index=True)
