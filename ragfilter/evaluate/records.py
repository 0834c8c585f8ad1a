"""What an evaluation stores of one query: counts, from which every figure follows. Pure.

A record names no chunk, so it reveals nothing about hidden ones. A run is a list of records, which
are saved as they are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from math import log2
from typing import Any

from ragfilter.answer.context import cost, fill
from ragfilter.engine.replay import ReplayMemo, replay, unfiltered
from ragfilter.errors import SettingsError
from ragfilter.evaluate.sweep import DEEPEST
from ragfilter.evaluate.variants import IN_FORCE, Variant
from ragfilter.model import PUBLIC, Hit, Pool, Result, User
from ragfilter.settings.schema import Settings

UNLABELLED = -1


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
class Curve:
    """The first `DEEPEST` chunks of the unfiltered ranking: distance, grade (`UNLABELLED` without a
    label), and the estimated tokens of those up to here that fit the prompt."""

    distances: tuple[float, ...]
    grades: tuple[int, ...]
    tokens: tuple[int, ...]


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
    relevant = {i for i, grade in labels.items() if grade > 0}
    ranking = unfiltered(pool, deep(in_force), user)
    # Variants with equal settings share one object.
    replayed: dict[int, tuple[Result, Kept]] = {}
    kept: dict[str, Kept] = {}
    memo: ReplayMemo = {}
    costs = {hit.id: cost(hit.chunk) for hit in ranking}
    for variant in variants:
        budget = variant.settings.context.max_context_tokens
        if variant.plain:
            kept[variant.name] = _count(
                unfiltered(pool, variant.settings, user), labels, 0.0, costs, budget
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
            counted = _count(result.kept, labels, ms, costs, budget)
            replayed[id(variant.settings)] = result, counted
        kept[variant.name] = replayed[id(variant.settings)][1]
    own = replayed[id(in_force)][0]
    dropped = {hit.id for hit in own.hits if own.user.sees(hit.chunk)} - {h.id for h in own.kept}
    return QueryRecord(
        id=query_id,
        query=pool.query,
        relevant=len(relevant),
        ideal=gain(sorted(labels.values(), reverse=True)),
        lost=len(relevant & dropped),
        curve=_curve(ranking, labels, costs, in_force.context.max_context_tokens),
        kept=kept,
        waiting=any(result.fell_back for result, _ in replayed.values()),
    )


@lru_cache(maxsize=8)
def deep(settings: Settings) -> Settings:
    """The settings with an unfiltered k large enough for everything that is looked for."""
    return settings.with_values({"retrieval.k": DEEPEST})


def gain(grades: Sequence[int]) -> float:
    """The discounted cumulative gain of chunks with these grades in this order: the sum of grade /
    log2(place + 1), as in trec_eval. Unlabelled chunks gain nothing."""
    return sum(max(grade, 0) / log2(place + 1) for place, grade in enumerate(grades, start=1))


def document(record: QueryRecord) -> dict[str, Any]:
    """The record as plain values, for storage."""
    return asdict(record)


def read(document: Mapping[str, Any]) -> QueryRecord:
    """The record from its stored values."""
    curve = {name: tuple(values) for name, values in document["curve"].items()}
    kept = {name: Kept(**values) for name, values in document["kept"].items()}
    return QueryRecord(**{**document, "curve": Curve(**curve), "kept": kept})


def _count(
    hits: Sequence[Hit], labels: Mapping[str, int], ms: float, costs: dict[str, int], budget: int
) -> Kept:
    """`costs` caches the tokens of chunks counted before; `budget` is the prompt's."""
    for hit in hits:
        if hit.id not in costs:
            costs[hit.id] = cost(hit.chunk)
    used = [0, *fill([costs[hit.id] for hit in hits], budget)]
    # The context layer has seen to this, but a plain search has no layers.
    fitting = [hit for hit, (before, now) in zip(hits, pairwise(used), strict=True) if now > before]
    grades = [labels.get(hit.id, UNLABELLED) for hit in fitting]
    return Kept(
        chunks=len(fitting),
        relevant=sum(grade > 0 for grade in grades),
        unlabelled=grades.count(UNLABELLED),
        dcg=gain(grades),
        tokens=used[-1],
        ms=ms,
    )


def _curve(
    ranking: Sequence[Hit], labels: Mapping[str, int], costs: Mapping[str, int], budget: int
) -> Curve:
    return Curve(
        distances=tuple(hit.distance for hit in ranking),
        grades=tuple(labels.get(hit.id, UNLABELLED) for hit in ranking),
        tokens=tuple(fill([costs[hit.id] for hit in ranking], budget)),
    )
