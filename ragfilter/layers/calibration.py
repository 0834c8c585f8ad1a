"""What a calibration computes: the features of hits, and from them how likely each is relevant; and
where a calibration or other tuned settings apply.

A feature has no scale: distances count as shares of the way from the best hit to the background, so
that a value means the same for every query. `settings.learned` declares features and calibrations,
and `ragfilter.evaluate.learning` makes them. docs/design.md#calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragfilter.errors import SettingsError
from ragfilter.layers.base import LayerInput, far_end
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.model import Hit, Pool
from ragfilter.settings.learned import Calibration, Origin, Split, TunedOn
from ragfilter.settings.schema import Quality, Settings
from ragfilter.text import words

Floats = NDArray[np.float64]
SCORED = frozenset({"score", "score_behind"})
"""The features that need rerank scores."""
NEAREST = 10
BEST = 4
REMEDY = "Learn it from labels of this collection by tuning, or choose another cutoff.strategy."


def features(hits: Sequence[Hit], inputs: LayerInput) -> dict[str, Floats]:
    """Every feature of these hits, which came into the cutoff together; rerank scores only
    if there are any. A hit without one counts as the lowest."""
    distances = np.array([hit.distance for hit in hits])
    order = np.argsort(distances, kind="stable")
    best = float(distances.min())
    background = inputs.background
    far = far_end([*distances]) if background is None else background
    way = (distances - best) / max(far - best, 1e-9)
    steps = np.diff(way[order])
    before, after = np.zeros(len(hits)), np.zeros(len(hits))
    before[order[1:]], after[order[:-1]] = steps, steps
    passages = [hit.chunk.passage for hit in hits]
    overlaps = words.overlaps(inputs.pool.query, passages)
    share = np.array([overlap.share for overlap in overlaps])
    columns = {
        "way": way,
        "start": np.full(len(hits), best / far if far > 0 else 0.0),
        "rank": np.log([max(hit.rank, 1) for hit in hits]),
        "place": np.log(np.arange(1, len(hits) + 1)),
        "gap_before": before,
        "gap_after": after,
        "crowd": np.full(len(hits), way[order[:NEAREST]].mean()),
        "rule": np.array([float(inputs.rules.check(hit.chunk.rule).holds) for hit in hits]),
        "words": share,
        "words_behind": share.max() - share,
        "linked": linked(hits, way),
    }
    scores = [hit.rerank_score for hit in hits if hit.rerank_score is not None]
    by_likelihood = np.arange(len(hits))
    if scores:
        lowest = min(scores)
        score = np.array([lowest if h.rerank_score is None else h.rerank_score for h in hits])
        columns |= {"score": score, "score_behind": score.max() - score}
        by_likelihood = np.argsort(-score, kind="stable")
    top = [int(i) for i in by_likelihood[:BEST]]
    columns["alike"] = np.array(words.likeness(passages, top))
    columns["kin"] = np.array(same_type([hit.chunk.type for hit in hits], top))
    return columns


def linked(hits: Sequence[Hit], way: Floats) -> Floats:
    """How much nearer than average the hits are that each hit is linked with by references, in
    either direction. What near hits share counts, so the sum is divided by the root of their
    number. Otherwise a chunk that everything refers to would stand out."""
    place = {hit.id: i for i, hit in enumerate(hits)}
    links = np.zeros((len(hits), len(hits)))
    for i, hit in enumerate(hits):
        for ref in hit.chunk.refs:
            if place.get(ref, i) != i:
                links[i, place[ref]] = links[place[ref], i] = 1.0
    return np.asarray(links @ (way.mean() - way) / np.sqrt(1 + links.sum(axis=1)))


def same_type(types: Sequence[str], best: Sequence[int]) -> list[float]:
    """The share of those at the places `best`, itself left out, that have the type of each."""
    shares = []
    for place, own in enumerate(types):
        others = [types[other] == own for other in best if other != place]
        shares.append(sum(others) / len(others) if others else 0.0)
    return shares


def probabilities(calibration: Calibration, columns: Mapping[str, Floats]) -> Floats:
    """How likely each hit is relevant. Raises KeyError for a feature that is missing."""
    n = len(next(iter(columns.values())))
    odds = np.full(n, calibration.intercept)
    for name, weight in calibration.weights.items():
        odds += weight * columns[name]
    for tree in calibration.trees:
        odds += _grow(tree, columns, n)
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))))


def _grow(tree: Split | float, columns: Mapping[str, Floats], n: int) -> Floats:
    if not isinstance(tree, Split):
        return np.full(n, tree)
    low, high = _grow(tree.low, columns, n), _grow(tree.high, columns, n)
    return np.where(columns[tree.feature] <= tree.at, low, high)


def differences(record: Origin, pool: Pool, quality: Quality) -> str:
    """How the pool differs from those that the record was made on: ``distances l2, not cosine``;
    empty if it does not. A pool that does not name its embedding model is taken to have the same.
    """
    # Tuned values cut what is cut now: distances, or the scores of one reranker for every query.
    by_distance = isinstance(record, TunedOn)
    reranks = always_reranks(quality) if by_distance else bool(record.reranker)
    reranker = reranker_key(quality) if reranks else ""
    pairs = (
        ("distances", record.space, pool.space),
        ("the embedding model", record.embedder, pool.embedder or record.embedder),
        ("the reranker", record.reranker or "none", reranker or "none"),
    )
    return ", ".join(
        f"{what} {ours or '(not named)'}, not {theirs}"
        for what, ours, theirs in pairs
        if ours != theirs
    )


def calibration_for(settings: Settings, pool: Pool) -> Calibration:
    """The calibration in the settings. Raises SettingsError if there is none, or it was learned
    with another space, embedding model or reranker."""
    calibration = settings.cutoff.calibration
    if calibration is None:
        raise SettingsError(
            "cutoff.strategy is calibrated, but nothing has been learned yet.",
            remedy=REMEDY,
            action="tune",
        )
    other = differences(calibration, pool, settings.quality)
    if other:
        raise SettingsError(
            f"The calibration was learned on {calibration.place} with {other}.",
            remedy=REMEDY,
            action="tune",
        )
    return calibration
