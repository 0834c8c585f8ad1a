"""What an evaluation stores of one query: counts, from which every figure follows. Pure.

A record names no chunk, so it reveals nothing about hidden ones. A run is a list of records, which
are saved as they are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any

from ragfilter.answer.context import fits
from ragfilter.engine.replay import ReplayMemo, replay, unfiltered
from ragfilter.errors import SettingsError
from ragfilter.evaluate.metrics import gains, relevant_of
from ragfilter.evaluate.prefixes import UNLABELLED, Curve, curve_of
from ragfilter.evaluate.variants import IN_FORCE, Variant
from ragfilter.model import PUBLIC, Hit, Pool, Result, User


@dataclass(frozen=True, slots=True)
class Kept:
    """What one variant kept for one query, as far as it fits the prompt. `dcg` is the discounted
    gain of the kept chunks in order; `ms` is the time its layers took, without the search (0 for a
    plain search, which has no layers)."""

    chunks: int
    relevant: int
    unlabelled: int
    dcg: float
    tokens: int
    ms: float


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """One query. `relevant` is the number of relevant chunks, and `ideal` is their discounted gain
    in the best order. `lost` is how many of them the pool holds and the run's settings drop, at any
    rank. `kept` holds every variant by name; `waiting`: a layer fell back."""

    id: str
    query: str
    relevant: int
    ideal: float
    lost: int
    curve: Curve
    kept: Mapping[str, Kept]
    waiting: bool = False


def record(
    query_id: str,
    pool: Pool,
    labels: Mapping[str, int],
    variants: Sequence[Variant],
    user: User = PUBLIC,
) -> QueryRecord:
    """Replay the pool with every variant and count. A variant that does not apply to the pool is
    left out. Raises ValueError if the run's own settings are missing, and SettingsError if they do
    not apply."""
    in_force = next((v.settings for v in variants if v.name == IN_FORCE), None)
    if in_force is None:
        raise ValueError("the current settings are not among the variants")
    relevant = relevant_of(labels)
    # Variants with equal settings share one object.
    replayed: dict[int, tuple[Result, Kept]] = {}
    kept: dict[str, Kept] = {}
    memo: ReplayMemo = {}
    for variant in variants:
        budget = variant.settings.context.max_context_tokens
        if variant.plain:
            kept[variant.name] = _count(
                unfiltered(pool, variant.settings, user), labels, 0.0, budget
            )
            continue
        if id(variant.settings) not in replayed:
            try:
                result = replay(pool, variant.settings, user, memo=memo, explain=False)
            except SettingsError:
                if variant.settings is in_force:
                    raise
                continue
            ms = sum(trace.ms for trace in result.traces)
            counted = _count(result.kept, labels, ms, budget)
            replayed[id(variant.settings)] = result, counted
        kept[variant.name] = replayed[id(variant.settings)][1]
    own = replayed[id(in_force)][0]
    dropped = {hit.id for hit in own.hits if own.user.sees(hit.chunk)} - {h.id for h in own.kept}
    return QueryRecord(
        id=query_id,
        query=pool.query,
        relevant=len(relevant),
        ideal=sum(gains(sorted(labels.values(), reverse=True))),
        lost=len(relevant & dropped),
        curve=curve_of(pool, labels, in_force, user),
        kept=kept,
        waiting=any(result.fell_back for result, _ in replayed.values()),
    )


def document(record: QueryRecord) -> dict[str, Any]:
    """The record as plain values, for storage."""
    return asdict(record)


def read(document: Mapping[str, Any]) -> QueryRecord:
    """The record from its stored values."""
    curve = {name: tuple(values) for name, values in document["curve"].items()}
    kept = {name: Kept(**values) for name, values in document["kept"].items()}
    return QueryRecord(**{**document, "curve": Curve(**curve), "kept": kept})


def _count(hits: Sequence[Hit], labels: Mapping[str, int], ms: float, budget: int) -> Kept:
    # The context layer has seen to this, but a plain search has no layers.
    fitting, tokens = fits(hits, budget)
    grades = [labels.get(hit.id, UNLABELLED) for hit in compress(hits, fitting)]
    return Kept(
        chunks=len(grades),
        relevant=sum(grade > 0 for grade in grades),
        unlabelled=grades.count(UNLABELLED),
        dcg=sum(gains(grades)),
        tokens=tokens,
        ms=ms,
    )
