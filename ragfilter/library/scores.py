"""Turns the scores of a store into distances, by their declared metric, and checks them.

The metric and its direction are never guessed. Scores that contradict the metric cause a warning.
A threshold that no value of the metric can reach is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import cast, get_args, overload

from ragfilter.errors import InputError, SettingsError
from ragfilter.layers.base import BACKGROUND_FROM
from ragfilter.layers.origin import SCALED
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import Metric, Score, Space
from ragfilter.settings.schema import Settings

Metrics = Metric | Mapping[str, Metric]
"""A metric, or the metric of each named score."""
METRICS = f"metric={' or '.join(', '.join(map(repr, get_args(Metric))).rsplit(', ', 1))}"
"""The metrics in words."""

RANGE: dict[Metric, tuple[float, float]] = {
    "l2": (0.0, 4.0),
    "euclidean": (0.0, 2.0),
    "cosine": (0.0, 2.0),
    "ip": (0.0, 2.0),
    "similarity": (-1.0, 1.0),
}
"""From where to where the scores of unit vectors lie."""
INSTEAD: dict[Metric, str] = {
    "euclidean": " If they are squared, pass metric='l2'.",
    "similarity": " If they are other scores, such as BM25, pass metric='rank'.",
}
NEGATED = "to get ip distances, add 1 to each, or pass metric='similarity' with the values negated."
"""pgvector's `<#>` gives them."""
SPAN: dict[Space, float] = {"l2": 4.0, "cosine": 2.0, "ip": 2.0}
"""How far apart two distances of unit vectors can be."""
EDGE = 1e-3
"""How far beyond its range a value may lie, since stores compute in single precision."""
MIN_SCORES = 3
"""The fewest hits whose scores can be checked."""
RRF_K, SOME = 60, 8
TINY = 1e-5


@overload
def check_metric(metric: str) -> Metric: ...
@overload
def check_metric(metric: str | None) -> Metric | None: ...
def check_metric(metric: str | None) -> Metric | None:
    """The metric of this name. Raises InputError for a name that is none."""
    if metric is not None and metric not in get_args(Metric):
        raise InputError(
            f"There is no metric {metric!r}.",
            remedy=f"Choose one of: {', '.join(get_args(Metric))}.",
        )
    return cast("Metric | None", metric)


def check_metrics(metric: str | Mapping[str, str] | None) -> Metrics | None:
    """The metric of this name, or of each named score. Raises InputError."""
    if isinstance(metric, Mapping):
        return {name: check_metric(each) for name, each in metric.items()}
    return check_metric(metric)


def space_of(metric: Metric) -> Space:
    """The space of the distances that `to_distances` makes."""
    if metric == "similarity":
        return "cosine"
    return "l2" if metric == "euclidean" else metric


def to_distances(scores: Sequence[float], metric: Metric) -> tuple[float, ...]:
    """The distance of each score; see `Score.distance`."""
    return tuple(Score(float(score), metric, 0).distance for score in scores)


def examine(scores: Sequence[float], metric: Metric) -> tuple[str, ...]:
    """What in `scores`, best hit first, contradicts `metric`, in words; () if nothing does."""
    doubts: list[str] = []
    n = len(scores)
    broken = sum(not isfinite(score) for score in scores)
    if broken:
        what = "is not a number" if broken == 1 else "are not numbers"
        return (f"{broken} of {n} scores {what}, so only the order given is used.",)
    if n > 1 and len(set(scores)) == 1 and metric != "rank":
        doubts.append(f"All {n} scores are equal, so there is no gap to cut at.")
    higher = metric in ("similarity", "rank")
    steps = [right - left for left, right in pairwise(scores)]
    rising, falling = any(s > 0 for s in steps), any(s < 0 for s in steps)
    # Two hits may be passed in any order.
    if n >= MIN_SCORES and higher and rising and not falling:
        what = "similarities" if metric == "similarity" else "scores"
        doubts.append(f"The {what} rise from hit to hit: if they are distances, pass their metric.")
    if n >= MIN_SCORES and not higher and falling and not rising:
        doubts.append(
            "The distances fall from hit to hit: if they are similarities, pass "
            "metric='similarity', and if they are other scores, metric='rank'."
        )
    if metric == "rank":
        return tuple(doubts)
    low, high = RANGE[metric]
    outside = [score for score in scores if not low - EDGE <= score <= high + EDGE]
    if metric == "ip" and _is_negated(scores):
        doubts.append(f"The scores look like negative inner products of unit vectors: {NEGATED}")
    elif outside:
        doubts.append(
            f"{len(outside)} of {n} scores, such as {outside[0]:g}, lie outside {low:g} to "
            f"{high:g}, the range of {metric} for unit vectors: thresholds may mean little."
            f"{INSTEAD.get(metric, '')}"
        )
    elif metric == "similarity" and _fused(scores):
        doubts.append(
            "The scores look like reciprocal rank fusion (RRF), whose scores are no "
            "similarities: if they are, pass metric='rank'."
        )
    return tuple(doubts)


def _fused(scores: Sequence[float]) -> bool:
    """Whether the scores are what reciprocal rank fusion gives, 1 / (k + place) added up over
    searches.

    With the usual k of 60, three searches give at most 3 / 61, and the nearest similarities are
    hardly ever all so low. With another k (Qdrant's is 2), most hits that one search found have a
    score whose inverse is a whole number, which above 1,000 many are by chance.
    """
    distinct = set(scores)
    if len(scores) < MIN_SCORES or min(distinct) <= 0:
        return False
    if max(distinct) <= (3 if len(scores) >= SOME else 2) / (RRF_K + 1) + TINY:
        return True
    inverse = [1 / score for score in distinct if score > 1e-3]
    whole = sum(abs(each - round(each)) <= TINY * each for each in inverse)
    return whole >= max(SOME, len(distinct) / 2)


def _is_negated(scores: Sequence[float]) -> bool:
    """Whether these are inner products of unit vectors with nothing but their sign turned."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return -1 - EDGE <= low < -EDGE and high <= 1 + EDGE


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
            remedy=f"If these are negative inner products: {NEGATED}"
            if _is_negated(distances)
            else "Normalise the vectors, or set quality.enabled to false.",
        )
