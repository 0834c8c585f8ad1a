"""The labelled queries that keep other chunks with other settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.metrics import precision_recall_f1, relevant_of
from ragfilter.evaluate.sweep import kept, plan
from ragfilter.model import Pool, User
from ragfilter.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class HitChange:
    """One query: how many chunks it keeps before and after, how many relevant ones it loses and
    gains, and the difference in F1."""

    id: str
    before: int
    after: int
    lost: int
    won: int
    gain: float


def changes(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    before: Settings,
    after: Settings,
    user: User | None = None,
) -> tuple[HitChange, ...]:
    """The queries that keep other chunks than before, those that lose most first."""
    planned, made = plan([before, after]), []
    for query_id, pool in pools.items():
        old, new = ({hit.id for hit in hits} for hits, _ in kept(pool, planned, user))
        if old != new:
            relevant = relevant_of(qrels[query_id])
            f1 = [precision_recall_f1(ids, relevant).f1 for ids in (old, new)]
            lost, won = len((old - new) & relevant), len((new - old) & relevant)
            made.append(HitChange(query_id, len(old), len(new), lost, won, f1[1] - f1[0]))
    return tuple(sorted(made, key=lambda each: (each.gain, each.id)))
