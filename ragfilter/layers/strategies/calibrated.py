"""calibrated: keep the hits that are probably relevant, as many as suit the target.

A calibration, learned from labels, estimates how likely each hit is to be relevant. Its features have no scale:
distances are shares of the way from the best hit to the background, so a value means the same for every query. The
strategy cuts values of 1 − probability. `ragfilter.evaluate.learning` makes calibrations. Source of the expected F: Ye,
Chai, Lee and Chieu, "Optimizing F-measure: a tale of two approaches", 2012; docs/design.md#calibrated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragfilter.answer.context_packing import block_tokens
from ragfilter.errors import SettingsError
from ragfilter.layers.layer import LayerInput, estimate_background
from ragfilter.layers.strategies.strategy import EPSILON, StrategySpec, steps
from ragfilter.layers.tuned_on import differences
from ragfilter.model import Cut, Hit, Pool
from ragfilter.settings.schema import Calibration, Cutoff, Settings, Split
from ragfilter.text import shared_words
from ragfilter.text.numbers import counted

Floats = NDArray[np.float64]
SCORED = frozenset({"score", "score_behind"})
"""The features that need rerank scores."""
NEAREST = 10
BEST = 4
BETA = {"f1": 1.0, "f2": 2.0}
RECALLS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)
"""The values that the recall setting offers."""


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Keep the number of hits that suits the target best; `values` are 1 − probability, best first.

    f1, f2: the first k with the highest expected F. recall: the hits that reach the probability that kept this share of
    the relevant hits. budget: all, in the order of `order_key`; the context budget then decides."""
    chances = 1.0 - np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
    gaps, target = steps(values), settings.target
    if target == "budget":
        reason = "the most probability per token first, as far as the context budget allows"
        return Cut("calibrated", int((chances > 0).sum()), reason, gaps)
    if target == "recall":
        share, least = threshold(settings)
        kept = int((chances >= least - EPSILON).sum())
        held_out = _known(settings).held_out.get(f"{share:g}")
        again = "" if held_out is None else f" ({held_out:.0%} on questions held out)"
        reason = f"kept probabilities ≥ {least:.3f}, which keep {share:.0%} of the relevant hits{again}"
        return Cut("calibrated", kept, reason, gaps, limit=1.0 - least)
    beyond = 0.0 if settings.calibration is None else settings.calibration.beyond
    expected = expected_f(chances, BETA[target], beyond)
    first = max(pinned, 1)
    kept = first + int(np.argmax(expected[first:] >= expected[first:].max() - EPSILON))
    falls = f"falls after hit {kept}" if kept < len(values) else "never falls"
    return Cut("calibrated", kept, f"expected {target.upper()} {expected[kept]:.2f} {falls}", gaps)


def order_key(value: float, hit: Hit, target: str) -> float:
    """The sort key of a hit, lowest first: `value`, its 1 − probability. For the target budget, it is minus the
    probability per token, since filling a budget greedily in this order nearly maximises the expected recall."""
    return (value - 1.0) / block_tokens(hit.chunk) if target == "budget" else value


def expected_f(chances: Floats, beta: float, beyond: float = 0.0) -> Floats:
    """The expected F of keeping the first k hits, for k from 0 up, if each is relevant with its own
    chance and `beyond` relevant chunks are not among them. Exact: it sums over the numbers of
    relevant hits among the kept and among the others, in time quadratic in the number of hits."""
    n, weight = len(chances), int(beta * beta)
    kept = np.zeros((n + 1, n + 1))
    kept[0, 0] = 1
    for k, chance in enumerate(chances, start=1):
        kept[k] = kept[k - 1] * (1 - chance)
        kept[k, 1:] += kept[k - 1, :-1] * chance
    found, expected = kept * np.arange(n + 1), np.zeros(n + 1)
    # The mean of 1 / (d + weight × relevant hits that are not kept), for d from 1 up.
    inverse = 1 / (np.arange(1, (1 + weight) * n + 1) + weight * beyond)
    for k in range(n, 0, -1):
        expected[k] = (1 + weight) * found[k, 1 : k + 1] @ inverse[k + weight - 1 : k + weight * k : weight]
        inverse = chances[k - 1] * inverse[weight:] + (1 - chances[k - 1]) * inverse[:-weight]
    return expected


def threshold(settings: Cutoff) -> tuple[float, float]:
    """The share of relevant hits to keep and the probability that keeps it, for the lowest share
    ≥ `recall` that had enough labels. Raises SettingsError if there is none."""
    calibration = _known(settings)
    shares = {float(share): least for share, least in calibration.keeps.items()}
    fit = [share for share in sorted(shares) if share >= settings.recall - EPSILON]
    if not fit:
        wanted = next(share for share in RECALLS if share >= settings.recall - EPSILON)
        missing = counted(lacking(wanted, calibration), "more relevant chunk")
        raise SettingsError(
            f"{calibration.relevant} labels of relevant chunks are too few to promise {wanted:.0%} of the relevant "
            "hits that reach the cutoff.",
            remedy=f"Label at least {missing} and tune again, or lower cutoff.recall.",
        )
    return fit[0], shares[fit[0]]


def _known(settings: Cutoff) -> Calibration:
    assert settings.calibration is not None, "hits were weighed without a calibration"
    return settings.calibration


def labels_for(recall: float) -> int:
    """The minimum number of labels of relevant chunks for a share of `recall`."""
    return math.ceil(1 / (1 - recall) - EPSILON) - 1


def lacking(share: float, calibration: Calibration) -> int:
    """How many more labels a missing share needs at least: tuning measures each fold with the other folds' labels."""
    folds = calibration.folds
    return max(math.ceil(labels_for(share) * folds / (folds - 1)) - calibration.relevant, 1)


def values_of(hits: Sequence[Hit], inputs: LayerInput) -> tuple[float, ...] | None:
    """1 − probability of each hit, or 1 for hits beyond the depth used in learning. None while rerank scores are
    missing. Raises SettingsError like `calibration_for`."""
    calibration = calibration_for(inputs.settings, inputs.pool)
    weighed = hits[: calibration.depth]
    columns = features(weighed, inputs) if weighed else {}
    if not calibration.features <= columns.keys():
        return None if weighed else ()
    relevant = probabilities(calibration, columns)
    return (*(1.0 - float(p) for p in relevant), *[1.0] * (len(hits) - len(weighed)))


def features(hits: Sequence[Hit], inputs: LayerInput) -> dict[str, Floats]:
    """Every feature of these hits, the cutoff's whole input. A hit without a rerank score gets the lowest, if any."""
    distances = np.array([hit.distance for hit in hits])
    order = np.argsort(distances, kind="stable")
    best = float(distances.min())
    far = estimate_background([*distances]) if inputs.background is None else inputs.background
    way = (distances - best) / max(far - best, 1e-9)
    steps = np.diff(way[order])
    before, after = np.zeros(len(hits)), np.zeros(len(hits))
    before[order[1:]], after[order[:-1]] = steps, steps
    passages = [hit.chunk.passage for hit in hits]
    share = np.array([overlap.share for overlap in shared_words.overlaps(inputs.pool.query, passages)])
    columns = {
        "way": way,
        "start": np.full(len(hits), best / far if far > 0 else 0.0),
        "rank": np.log([max(hit.rank, 1) for hit in hits]),
        "place": np.log(np.arange(1, len(hits) + 1)),
        "gap_before": before,
        "gap_after": after,
        "crowd": np.full(len(hits), way[order[:NEAREST]].mean()),
        "rule": np.array([float(inputs.scan.check(hit.chunk.rule).holds) for hit in hits]),
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
    columns["alike"] = np.array(shared_words.likeness(passages, top))
    columns["kin"] = np.array(same_type([hit.chunk.type for hit in hits], top))
    return columns


def linked(hits: Sequence[Hit], way: Floats) -> Floats:
    """For each hit, how much nearer than average the hits are that it refers to or that refer to it. The sum is divided
    by the square root of the number of links plus one; otherwise a chunk that everything refers to would stand out."""
    place = {hit.id: i for i, hit in enumerate(hits)}
    links = np.zeros((len(hits), len(hits)))
    for i, hit in enumerate(hits):
        for ref in hit.chunk.refs:
            if place.get(ref, i) != i:
                links[i, place[ref]] = links[place[ref], i] = 1.0
    return np.asarray(links @ (way.mean() - way) / np.sqrt(1 + links.sum(axis=1)))


def same_type(types: Sequence[str], best: Sequence[int]) -> list[float]:
    """For each place, the share of the other places in `best` that have the same type."""
    shares = []
    for place, own in enumerate(types):
        others = [types[other] == own for other in best if other != place]
        shares.append(sum(others) / len(others) if others else 0.0)
    return shares


def probabilities(calibration: Calibration, columns: Mapping[str, Floats]) -> Floats:
    """The probability that each hit is relevant. Raises KeyError if a feature is missing."""
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


def calibration_for(settings: Settings, pool: Pool) -> Calibration:
    """The calibration in the settings. Raises SettingsError if there is none, or if it does not apply to the pool."""
    calibration = settings.cutoff.calibration
    if calibration is None:
        raise SettingsError(
            "cutoff.strategy is calibrated, but nothing has been learned yet.",
            remedy="Tune on labels of this collection, or choose another cutoff.strategy.",
            action="tune",
        )
    other = differences(calibration, pool, settings.quality)
    if other:
        raise SettingsError(
            f"The calibration was learned on {calibration.collection_name} with {other}.",
            remedy="Recalibrate on labels of this collection, or choose another cutoff.strategy.",
            action="recalibrate",
        )
    return calibration


SPEC = StrategySpec(
    name="calibrated",
    cut=cut,
    reads=("max_results", "min_results", "calibration", "target", "recall", "prefix"),
    reads_pool=True,
    values_of=values_of,
)
