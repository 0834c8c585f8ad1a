"""Adapts tuned settings to another embedding model, space, reranker, chunking or corpus. Pure.

With labels, the settings are tuned again from `start`, and compared on the same questions with the settings in use, as
if those still applied (`as_they_are`). Without labels, `carry_over` moves thresholds to the new scale of distances:
each takes the value with the same share of hits below it, over the recorded questions. This is a guess."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from ragfilter.errors import InputError
from ragfilter.layers.layer import background_reach, estimate_background
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.strategies.strategy import strategy
from ragfilter.model import Pool, PoolResult, similarity
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Calibration, Settings, TunedOn

Floats = NDArray[np.float64]
DEPTH = 50
"""How many of each question's nearest hits are used."""
DIGITS = 6
RECORD = "cutoff.tuned_on"
"""Path of the setting that records what settings were tuned on."""
RECORDS = (RECORD, "cutoff.calibration")
"""Paths of all settings that record what was chosen by or learned from labels."""
BY_HAND = ("score", "limits")
"""Cutoff settings that labels never choose."""
RERANKING = ("quality.mode", "quality.max_top_k", "quality.reranker_top_k", "quality.reranker_threshold")
"""Settings that tuning changes to always rerank."""


def _reach(pool: Pool) -> float:
    return background_reach([hit for hit in pool.hits if hit.found_by == "query"])


SAMPLES: Mapping[str, Callable[[Pool, Floats], Floats]] = {
    "cutoff.gap_threshold": lambda _, distances: np.diff(distances),
    "cutoff.distance_offset": lambda _, distances: distances - distances[0],
    "cutoff.relative_offset": lambda pool, distances: (
        (distances - distances[0]) / max(_reach(pool) * (estimate_background(pool.distances) - distances[0]), 1e-9)
    ),
    "quality.score_threshold": lambda pool, distances: np.array([similarity(float(distances[0]), pool.space)]),
    "confidence.high_below": lambda _, distances: distances[:1],
    "confidence.medium_below": lambda _, distances: distances[:1],
}
"""The values in one pool that a threshold is compared with, given its ascending distances."""


def start(old: Settings, profile: str) -> Settings:
    """Where tuning starts: what labels chose is as in the profile, the rest as in `old`."""
    if not any(old.get(path) for path in RECORDS):
        return old
    fresh = Settings().with_values(PROFILES[profile].values)
    reranks = always_reranks(old.quality)
    paths = ["quality.enabled", *(RERANKING if reranks else ())]
    if reranks and old.quality.reranker == "late_interaction":
        paths.append("quality.reranker")
    chosen = {path: fresh.get(path) for path in paths}
    chosen |= {f"cutoff.{name}": getattr(old.cutoff, name) for name in BY_HAND}
    return old.model_copy(update={"cutoff": fresh.cutoff}).with_values(chosen)


def as_they_are(settings: Settings, pool: Pool, *, guess: bool = False) -> Settings:
    """The same values, as if chosen with the pool's model, space and reranker. `guess` marks them as a guess for the
    pool's collection."""
    key = reranker_key(settings.quality) if always_reranks(settings.quality) else ""
    changed = {}
    for path in RECORDS:
        record: TunedOn | Calibration | None = settings.get(path)
        if record is not None:
            reranks = isinstance(record, TunedOn) or record.reranker
            place = {"embedder": pool.embedder, "space": pool.space, "reranker": key if reranks else ""}
            if isinstance(record, TunedOn):
                place["score"] = settings.cutoff.score
            of_guess = {"guess": True, "collection": pool.collection} if guess else {}
            changed[path] = record.model_copy(update=place | of_guess)
    return settings.with_values(changed)


def quantiles(settings: Settings, pools: Collection[Pool]) -> dict[str, float]:
    """The share of hits below each threshold that the settings read, by path."""
    return {
        path: round(float(np.mean(values <= settings.get(path))), DIGITS)
        for path, values in _samples(settings, pools).items()
    }


def carry_over(results: Mapping[str, PoolResult], old: Settings) -> Settings:
    """Adapt settings to another model or space without labels: each tuned threshold moves to the value with the same
    share of these results' distances below it. This is a guess, and the settings' record says so. Settings that were
    not chosen by labels stay. Raises InputError without results."""
    if not results:
        raise InputError("There are no results.", remedy="Pass results of recorded questions.")
    return carried(old, [result.pool for result in results.values()])


def carried(settings: Settings, pools: Collection[Pool]) -> Settings:
    """The settings moved to the scale of these pools (one per question) and marked as a guess. Settings without a
    recorded quantile stay as they are: a calibration, which has no scale, and thresholds that labels did not choose."""
    moved = as_they_are(settings, next(iter(pools)), guess=True)
    record = moved.cutoff.tuned_on
    if record is None:
        return moved
    values = {
        path: float(f"{np.quantile(values, record.quantiles[path]):.3g}")
        for path, values in _samples(settings, pools).items()
        if path in record.quantiles and record.values.get(path, settings.get(path)) == settings.get(path)
    }
    chosen = {path: values.get(path, value) for path, value in record.values.items()}
    return moved.with_values(values | {RECORD: record.model_copy(update={"values": chosen})})


def _samples(settings: Settings, pools: Collection[Pool]) -> dict[str, Floats]:
    """The values of all pools, by the path of the threshold that is compared with them."""
    reads = [f"cutoff.{name}" for name in strategy(settings.cutoff.strategy).reads]
    # After reranking, the cutoff compares scores, which the space does not change.
    by_distance = settings.cutoff.enabled and not always_reranks(settings.quality)
    curves = [(pool, np.sort(pool.distances)[:DEPTH]) for pool in pools if pool.space != "rank" and pool.distances]
    samples = {
        path: np.concatenate([sample(*curve) for curve in curves] or [np.zeros(0)])
        for path, sample in SAMPLES.items()
        if not path.startswith("cutoff.") or (by_distance and path in reads)
    }
    return {path: values for path, values in samples.items() if len(values)}
