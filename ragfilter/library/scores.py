"""Turns the scores of a store into distances, by their declared metric, and checks them.

The metric and its direction are never guessed. Scores that contradict the metric cause a warning.
A threshold that no value of the metric can reach is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Literal, get_args

from ragfilter.errors import InputError, SettingsError
from ragfilter.layers.base import BACKGROUND_FROM
from ragfilter.layers.cutoff import SCALED
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import Space
from ragfilter.settings.schema import Settings

Metric = Literal["l2", "cosine", "ip", "similarity"]
"""``l2`` (squared), ``cosine`` and ``ip`` are distances as Chroma gives them, lower is nearer;
``similarity`` is a cosine similarity, higher is nearer."""

SPAN: dict[Space, float] = {"l2": 4.0, "cosine": 2.0, "ip": 2.0}
"""How far apart two distances of unit vectors can be."""
EDGE = 1e-3
"""How far beyond its range a value may lie, since stores compute in single precision."""


def check_metric(metric: str | None) -> None:
    """Raises InputError for a name that is no metric."""
    if metric is not None and metric not in get_args(Metric):
        raise InputError(
            f"There is no metric {metric!r}.",
            remedy=f"Choose one of: {', '.join(get_args(Metric))}.",
        )


def space_of(metric: Metric) -> Space:
    """The space of the distances that `to_distances` makes."""
    return "cosine" if metric == "similarity" else metric


def to_distances(scores: Sequence[float], metric: Metric) -> tuple[float, ...]:
    """Distances, lower is nearer: a similarity s becomes the cosine distance 1 − s."""
    if metric == "similarity":
        return tuple(1.0 - float(score) for score in scores)
    return tuple(map(float, scores))


def examine(scores: Sequence[float], metric: Metric) -> tuple[str, ...]:
    """What in `scores`, best hit first, contradicts `metric`, in words; () if nothing does."""
    found: list[str] = []
    n = len(scores)
    broken = sum(not isfinite(score) for score in scores)
    if broken:
        what = "is not a number" if broken == 1 else "are not numbers"
        return (f"{broken} of {n} scores {what}, so only the order given is used.",)
    if n > 1 and len(set(scores)) == 1:
        found.append(f"All {n} scores are equal, so there is no gap to cut at.")
    steps = [right - left for left, right in pairwise(scores)]
    rising, falling = any(s > 0 for s in steps), any(s < 0 for s in steps)
    if metric == "similarity" and rising and not falling:
        found.append(
            "The similarities rise from hit to hit: if they are distances, pass their metric."
        )
    if metric != "similarity" and falling and not rising:
        found.append(
            "The distances fall from hit to hit: if they are similarities, say metric='similarity'."
        )
    low, high = (-1.0, 1.0) if metric == "similarity" else (0.0, SPAN[metric])
    outside = [score for score in scores if not low - EDGE <= score <= high + EDGE]
    if outside:
        found.append(
            f"{len(outside)} of {n} scores, such as {outside[0]:g}, lie outside {low:g} to "
            f"{high:g}, the range of {metric} for unit vectors: thresholds may mean little."
        )
    return tuple(found)


def check_thresholds(settings: Settings, space: Space, *, reranks: bool) -> None:
    """Raises SettingsError for a threshold that no value can reach: a distance of `space`, or where
    every query is reranked (`reranks`), 1 − its score."""
    cutoff = settings.cutoff
    if reranks:
        span, values = 1.0, "values made of rerank scores"
    elif space in ("l2", "cosine"):
        span, values = SPAN[space], f"{space} distances of unit vectors"
    else:
        return
    for name in strategy(cutoff.strategy).reads if cutoff.enabled else ():
        if name in SCALED and getattr(cutoff, name) > span:
            raise SettingsError(
                f"cutoff.{name} = {getattr(cutoff, name):g} can never be reached: {values} are at "
                f"most {span:g} apart.",
                remedy="Lower it." if reranks else "Lower it, or correct the metric.",
            )


def check_similarities(settings: Settings, space: Space, distances: Sequence[float]) -> None:
    """Raises SettingsError if quality compares similarities, and `distances` have none: inner
    products of vectors that are not of unit length."""
    quality = settings.quality
    known = quality.good_by == "background" and len(distances) >= BACKGROUND_FROM
    if not quality.enabled or known or space != "ip":
        return
    outside = [d for d in distances if not -EDGE <= d <= SPAN[space] + EDGE]
    if outside:
        raise SettingsError(
            f"quality.score_threshold = {quality.score_threshold:g} means nothing here: an ip "
            f"distance of {outside[0]:g} is not one of unit vectors, so it has no similarity.",
            remedy="Normalise the vectors, or set quality.enabled to false.",
        )
