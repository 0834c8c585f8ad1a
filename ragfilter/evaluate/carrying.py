"""Thresholds on another scale of distances, without labels: each takes the value that the same
share of the hits of recorded questions is below. A guess. Pure; numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ragfilter.layers.base import far_end
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import Pool, similarity
from ragfilter.settings.learned import Calibration, TunedOn
from ragfilter.settings.schema import Settings

Floats = NDArray[np.float64]
DEPTH = 50
"""How many hits of each question are used, the nearest first."""
DIGITS = 6
RECORDS = ("cutoff.tuned_on", "cutoff.calibration")
"""Where settings carry what labels chose or taught."""


def _way(pool: Pool, distances: Floats) -> Floats:
    whole = [hit.distance for hit in pool.hits if hit.found_by == "query"]
    way: Floats = (distances - distances[0]) / max(far_end(whole) - distances[0], 1e-9)
    return way


SAMPLES: Mapping[str, Callable[[Pool, Floats], Floats]] = {
    "cutoff.gap_threshold": lambda _, distances: np.diff(distances),
    "cutoff.distance_offset": lambda _, distances: distances - distances[0],
    "cutoff.relative_offset": _way,
    "quality.score_threshold": lambda pool, distances: np.array(
        [similarity(float(distances[0]), pool.space)]
    ),
    "confidence.high_below": lambda _, distances: distances[:1],
    "confidence.medium_below": lambda _, distances: distances[:1],
}
"""What a threshold is compared with: the values in one pool, from its ascending distances."""


def quantiles(settings: Settings, pools: Collection[Pool]) -> dict[str, float]:
    """The share of the hits that are below each threshold that the settings read, by path."""
    return {
        path: round(float(np.mean(values <= settings.get(path))), DIGITS)
        for path, values in _samples(settings, pools).items()
    }


def as_they_are(settings: Settings, pool: Pool) -> Settings:
    """The same values, as if they had been chosen on the pool's model, space and reranker."""
    key = reranker_key(settings.quality) if always_reranks(settings.quality) else ""
    changed = {}
    for path in RECORDS:
        record: TunedOn | Calibration | None = settings.get(path)
        if record is not None:
            reranks = isinstance(record, TunedOn) or record.reranker
            place = {"embedder": pool.embedder, "space": pool.space}
            changed[path] = record.model_copy(update=place | {"reranker": key if reranks else ""})
    return settings.with_values(changed)


def carried(settings: Settings, pools: Collection[Pool]) -> Settings:
    """The settings for the scale of these pools, one for each question, marked as a guess.

    What has no recorded quantile stays as it is: a calibration, which has no scale, and thresholds
    that labels did not choose.
    """
    moved = as_they_are(settings, next(iter(pools)))
    guessed = {path: moved.get(path).model_copy(update={"guess": True})
               for path in RECORDS if moved.get(path) is not None}  # fmt: skip
    record = settings.cutoff.tuned_on
    shares = {} if record is None else record.quantiles
    values = {
        path: float(f"{np.quantile(values, shares[path]):.3g}")
        for path, values in _samples(settings, pools).items()
        if path in shares and (record is None or record.values.get(path) == settings.get(path)
                               or path not in record.values)
    }  # fmt: skip
    if record is not None:
        chosen = dict(record.values) | {p: v for p, v in values.items() if p in record.values}
        guessed["cutoff.tuned_on"] = guessed["cutoff.tuned_on"].model_copy(
            update={"values": chosen}
        )
    return moved.with_values(values | guessed)


def _samples(settings: Settings, pools: Collection[Pool]) -> dict[str, Floats]:
    """The values of all pools by the path of the threshold that they are compared with."""
    reads = strategy(settings.cutoff.strategy).reads
    # After reranking, the cutoff compares scores, which the space does not change.
    by_distance = settings.cutoff.enabled and not always_reranks(settings.quality)
    paths = [
        path
        for path in SAMPLES
        if not path.startswith("cutoff.")
        or (by_distance and path.removeprefix("cutoff.") in reads)
    ]  # fmt: skip
    curves = {
        id(pool): np.sort([hit.distance for hit in pool.hits if hit.found_by == "query"])[:DEPTH]
        for pool in pools
        if pool.space != "rank" and any(hit.found_by == "query" for hit in pool.hits)
    }
    found = {
        path: np.array([*chain.from_iterable(
            SAMPLES[path](pool, curves[id(pool)]) for pool in pools if id(pool) in curves
        )])
        for path in paths
    }  # fmt: skip
    return {path: values for path, values in found.items() if len(values)}
