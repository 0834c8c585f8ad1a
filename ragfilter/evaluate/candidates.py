"""The candidates for tuning: every strategy with values for the settings it cuts by. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import median
from typing import Any

from ragfilter.evaluate.learning import DEPTH
from ragfilter.layers.base import far_end
from ragfilter.layers.quality import always_reranks
from ragfilter.layers.strategies.registry import STRATEGIES
from ragfilter.model import Pool
from ragfilter.settings.schema import Settings

RERANKED = 20
"""How many hits are reranked for the candidates that rerank."""

KS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 50)
COARSE_KS = (5, 10, 20)
GRID: Mapping[str, tuple[float, ...]] = {
    "jumps": (1, 2, 3),
    "b_extra": (0, 1, 3),
    "relative_offset": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5),
}
# Distances have a scale, so these are fractions of the way from the best hit to the background.
SHARES: Mapping[str, tuple[float, ...]] = {
    "gap_threshold": (0.05, 0.1, 0.15, 0.2, 0.3),
    "distance_offset": (0.1, 0.2, 0.3, 0.4, 0.5, 0.7),
}


def gathering(settings: Settings, *, rerank: bool) -> Settings:
    """The settings to gather with, so that the pools hold all that the candidates need. The cutoff
    that is set may not apply yet: `calibrated`, before anything was learned."""
    ready = _reranking(settings, DEPTH) if rerank else settings
    deep = max(DEPTH, settings.cutoff.max_results)
    return by_gap(ready).with_values({"cutoff.max_results": deep})


def by_gap(settings: Settings) -> Settings:
    """The settings with a cutoff that applies to any collection."""
    return settings.with_values(
        {"cutoff.strategy": "gap", "cutoff.calibration": "", "cutoff.tuned_on": ""}
    )


def candidates(
    settings: Settings, pools: Iterable[Pool], *, rerank: bool
) -> dict[str, tuple[Settings, ...]]:
    """The candidates by strategy: with the quality layer as it is set, without it, and with
    reranking always on. What a strategy learns is not a candidate."""
    spread = _spread(pools)
    return {
        spec.name: tuple(
            base.with_values(values)
            for base in bases(settings, rerank=rerank, depth=RERANKED)
            # 1 − rerank score is between 0 and 1, whatever the space.
            for values in _grid(
                spec.name, spec.reads, 1.0 if always_reranks(base.quality) else spread
            )
        )
        for spec in STRATEGIES
        if spec.weigh is None
    }


def bases(settings: Settings, *, rerank: bool, depth: int) -> list[Settings]:
    """The alternatives for what comes before the cutoff."""
    first = settings.with_values(
        {"cutoff.enabled": True, "cutoff.calibration": "", "cutoff.tuned_on": ""}
    )
    bases = [first]
    if settings.quality.enabled:
        bases.append(first.with_values({"quality.enabled": False}))
    if rerank:
        bases.append(_reranking(first, depth))
    return bases


def _reranking(settings: Settings, depth: int) -> Settings:
    """The same settings, with everything that enters the quality layer reranked and nothing
    dropped."""
    quality = settings.quality
    depth = max(depth, quality.max_top_k)
    return settings.with_values(
        {
            "quality.enabled": True,
            "quality.mode": "always",
            "quality.reranker": "late_interaction"
            if quality.reranker == "none"
            else quality.reranker,
            "quality.max_top_k": depth,
            "quality.reranker_top_k": depth,
            "quality.reranker_threshold": 0.0,
            # Distances that were tuned without a reranker are refused with one.
            "cutoff.tuned_on": "",
        }
    )


def _spread(pools: Iterable[Pool]) -> float:
    """The typical distance of the background from the best hit."""
    distances = ([hit.distance for hit in pool.hits if hit.found_by == "query"] for pool in pools)
    return median([far_end(values) - min(values) for values in distances if values] or [1.0])


def _grid(name: str, reads: Sequence[str], spread: float) -> list[dict[str, Any]]:
    """Every combination of the settings that a strategy reads."""
    axes: dict[str, tuple[Any, ...]] = {
        setting: GRID.get(setting) or tuple(_short(spread * s) for s in SHARES[setting])
        for setting in reads
        if setting in GRID or setting in SHARES
    }
    axes["max_results"] = COARSE_KS if axes else KS
    return [
        {"cutoff.strategy": name, "cutoff.min_results": 1}
        | {f"cutoff.{setting}": value for setting, value in zip(axes, values, strict=True)}
        for values in product(*axes.values())
    ]


def _short(value: float) -> float:
    """Two significant digits within the setting's range; a third makes no difference."""
    return min(float(f"{value:.2g}"), 4.0)
