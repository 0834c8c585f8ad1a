"""The features of a learned cutoff: some values of each hit, none of which has a scale.

Distances count as shares of the way from the best hit to the background, so that a value means the
same for every query. docs/design.md#calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragfilter.layers.base import LayerInput
from ragfilter.layers.strategies.base import far_end
from ragfilter.model import Hit
from ragfilter.text import words

Floats = NDArray[np.float64]
FEATURES: Mapping[str, str] = {
    "way": "distance, as a share of the way from the best hit to the background",
    "start": "the best hit's distance as a share of the background",
    "rank": "logarithm of the rank by distance",
    "place": "logarithm of the place in the order they come in",
    "gap_before": "step from the next nearer hit, as a share of that way",
    "gap_after": "step to the next farther hit, as a share of that way",
    "crowd": "mean share of the way of the ten nearest: low where the curve is flat",
    "rule": "1 where the chunk's own rule holds for the query",
    "words": "words shared with the query, as a share of the maximum overlap",
    "words_behind": "how far that lies below the most of any hit",
    "alike": "words shared with the four best hits: by rerank score, or in the order they come in",
    "linked": "how much nearer than the others the hits are that it refers to, or that refer to it",
    "kin": "share of the four best hits that are of its type",
    "score": "rerank score",
    "score_behind": "how far that lies below the best score of any hit",
}
"""Every feature and its meaning."""
SCORED = frozenset({"score", "score_behind"})
"""Those that need rerank scores."""
NEAREST = 10
BEST = 4


def features(hits: Sequence[Hit], inputs: LayerInput) -> dict[str, Floats]:
    """Every feature of these hits, which came into the cutoff together; those of rerank scores only
    where there are any. A hit without one counts as the lowest."""
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
    shared = words.overlaps(inputs.pool.query, passages)
    share = np.array([overlap.share for overlap in shared])
    made = {
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
    likely = np.arange(len(hits))
    if scores:
        lowest = min(scores)
        score = np.array([lowest if h.rerank_score is None else h.rerank_score for h in hits])
        made |= {"score": score, "score_behind": score.max() - score}
        likely = np.argsort(-score, kind="stable")
    top = [int(i) for i in likely[:BEST]]
    made["alike"] = np.array(words.likeness(passages, top))
    made["kin"] = np.array(kin([hit.chunk.type for hit in hits], top))
    return made


def linked(hits: Sequence[Hit], way: Floats) -> Floats:
    """How much less than the mean the way is of all hits that each is linked with by references, in
    either direction. What near hits share counts, so the sum is divided by the root of their
    number. Otherwise a chunk that everything refers to would stand out."""
    place = {hit.id: i for i, hit in enumerate(hits)}
    links = np.zeros((len(hits), len(hits)))
    for i, hit in enumerate(hits):
        for ref in hit.chunk.refs:
            if place.get(ref, i) != i:
                links[i, place[ref]] = links[place[ref], i] = 1.0
    return np.asarray(links @ (way.mean() - way) / np.sqrt(1 + links.sum(axis=1)))


def kin(types: Sequence[str], best: Sequence[int]) -> list[float]:
    """The share of those at the places `best`, itself left out, that have the type of each."""
    made = []
    for place, own in enumerate(types):
        others = [types[other] == own for other in best if other != place]
        made.append(sum(others) / len(others) if others else 0.0)
    return made
