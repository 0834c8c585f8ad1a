"""What an evaluation stores of one query: counts and nDCG, from which every figure follows. Pure.

A record names no chunk, so it reveals nothing about hidden ones. A run is a list of records, which
are saved as they are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

from ragfilter.answer.context import fits
from ragfilter.engine.replay import ReplayMemo, replay, unfiltered
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate.metrics import ndcg, relevant_of
from ragfilter.evaluate.prefixes import UNLABELLED, Curve, curve_of, ids_of_each, ranking_of
from ragfilter.evaluate.variants import IN_FORCE, Variant
from ragfilter.layers.clearance import viewer
from ragfilter.model import Hit, Pool, PoolResult, User
from ragfilter.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class KeptCounts:
    """What one variant kept for one query, as far as it fits the prompt. `ms` is the time its
    layers took, without the search (0 for a plain search, which has no layers)."""

    chunks: int
    relevant: int
    unlabelled: int
    ndcg: float
    tokens: int
    ms: float


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """One query. `relevant` is the number of relevant chunks, and `lost` is how many of them the
    pool holds and the run's settings drop, at any rank. `ndcg` is that of the curve's first k, for
    every k. `kept` holds every variant by name; `waiting`: a layer fell back."""

    id: str
    query: str
    relevant: int
    lost: int
    curve: Curve
    ndcg: tuple[float, ...]
    kept: Mapping[str, KeptCounts]
    waiting: bool = False


def record(
    query_id: str,
    pool: Pool,
    labels: Mapping[str, int],
    variants: Sequence[Variant],
    user: User | None = None,
) -> QueryRecord:
    """Replay the pool with every variant and count. A variant that does not apply to the pool is
    left out; the run's own settings apply, or there would be no pool."""
    in_force = next(v.settings for v in variants if v.name == IN_FORCE)
    user = viewer(user, in_force)
    relevant = relevant_of(labels)
    ranking = ranking_of(pool, in_force, user)
    # Variants with equal settings share one object.
    replayed: dict[int, PoolResult] = {}
    chosen: dict[str, _Chosen] = {}
    memo: ReplayMemo = {}
    for variant in variants:
        settings = variant.settings
        if variant.plain:
            chosen[variant.name] = _choose(unfiltered(pool, settings, user), settings, 0.0)
            continue
        if id(settings) not in replayed:
            try:
                result = replay(pool, settings, user, memo=memo, explain=False)
            except SettingsError:
                continue
            replayed[id(settings)] = result
        result = replayed[id(settings)]
        ms = sum(trace.ms for trace in result.traces)
        chosen[variant.name] = _choose(result.kept, settings, ms)
    own = replayed[id(in_force)]
    dropped = {hit.id for hit in own.hits if own.user.sees(hit.chunk)} - {h.id for h in own.kept}
    every_k = ids_of_each(ranking, in_force)
    gains = ndcg([*every_k, *(each.ids for each in chosen.values())], labels)
    return QueryRecord(
        id=query_id,
        query=pool.query,
        relevant=len(relevant),
        lost=len(relevant & dropped),
        curve=curve_of(ranking, labels, in_force),
        ndcg=tuple(gains[: len(every_k)]),
        kept={
            name: _count(each, labels, gain)
            for (name, each), gain in zip(chosen.items(), gains[len(every_k) :], strict=True)
        },
        waiting=any(result.fell_back for result in replayed.values()),
    )


def read(document: Mapping[str, Any]) -> QueryRecord:
    """The record from its stored values, those of `asdict`. Raises InputError for those of an
    earlier version."""
    if "ndcg" not in document:
        raise InputError(
            "An earlier version of ragfilter saved this run, with other figures.",
            remedy="Measure it again, or remove it.",
        )
    curve = {name: tuple(values) for name, values in document["curve"].items()}
    kept = {name: KeptCounts(**values) for name, values in document["kept"].items()}
    own = {"curve": Curve(**curve), "ndcg": tuple(document["ndcg"]), "kept": kept}
    return QueryRecord(**{**document, **own})


class _Chosen(NamedTuple):
    """The chunks that one variant kept and that fit its prompt, with their tokens."""

    ids: list[str]
    tokens: int
    ms: float


def _choose(hits: Sequence[Hit], settings: Settings, ms: float) -> _Chosen:
    # The context layer has seen to this, but a plain search has no layers.
    fitting, tokens = fits(hits, settings.context.max_context_tokens)
    return _Chosen([hit.id for hit in compress(hits, fitting)], tokens, ms)


def _count(chosen: _Chosen, labels: Mapping[str, int], ndcg: float) -> KeptCounts:
    grades = [labels.get(i, UNLABELLED) for i in chosen.ids]
    return KeptCounts(
        chunks=len(grades),
        relevant=sum(grade > 0 for grade in grades),
        unlabelled=grades.count(UNLABELLED),
        ndcg=ndcg,
        tokens=chosen.tokens,
        ms=chosen.ms,
    )
