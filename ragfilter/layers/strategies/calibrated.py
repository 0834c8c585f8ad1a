"""calibrated: keep what is likely to be relevant by the labels, as many chunks as suit the target.

A calibration says how likely each hit is to be relevant. The values that are cut are
1 − probability. Source of the expected F: Ye, Chai, Lee and Chieu, "Optimizing F-measure: a
tale of two approaches", 2012; docs/design.md#calibrated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ragfilter.answer.context import cost
from ragfilter.errors import SettingsError
from ragfilter.layers.base import LayerInput
from ragfilter.layers.calibration import Floats, calibration_for, features, probabilities
from ragfilter.layers.strategies.base import EPSILON, StrategySpec, steps
from ragfilter.model import Cut, Hit
from ragfilter.settings.learned import Calibration
from ragfilter.settings.schema import Cutoff
from ragfilter.text.numbers import counted

BETA = {"f1": 1.0, "f2": 2.0}
SHARES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98)
"""The values of the recall dial."""


def cut(values: Sequence[float], settings: Cutoff, pinned: int, background: float) -> Cut:
    """Keep as many as serves the target best; `values` are 1 − probability, best first.

    f1, f2: the first k whose expected F is highest. recall: what reaches the probability that kept
    this share of the relevant hits. budget: all, in the order of `order_key`; the context budget
    then decides.
    """
    chances = 1.0 - np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
    gaps, target = steps(values), settings.target
    if target == "budget":
        known = int((chances > 0).sum())
        return Cut(
            "calibrated",
            known,
            "the most probability per token first, as far as the context budget allows",
            gaps,
        )
    if target == "recall":
        calibration = _known(settings)
        share, least = threshold(settings)
        kept = int((chances >= least - EPSILON).sum())
        reason = f"kept probabilities ≥ {least:.3f}, which keep {share:.0%} of the relevant hits"
        held_out = calibration.held_out.get(f"{share:g}")
        if held_out is not None:
            reason += f" ({held_out:.0%} on questions held out)"
        return Cut("calibrated", kept, reason, gaps, limit=1.0 - least)
    beyond = 0.0 if settings.calibration is None else settings.calibration.beyond
    expected = expected_f(chances, BETA[target], beyond)
    first = max(pinned, 1)
    kept = first + int(np.argmax(expected[first:] >= expected[first:].max() - EPSILON))
    falls = f"falls after hit {kept}" if kept < len(values) else "never falls"
    return Cut("calibrated", kept, f"expected {target.upper()} {expected[kept]:.2f} {falls}", gaps)


def order_key(value: float, hit: Hit, target: str) -> float:
    """What hits are ordered by, lowest first: their 1 − probability (`value`). For the target
    budget it is minus the probability that a token buys: filled greedily in this order, a budget
    holds about the most expected recall that it can (the best filling is a knapsack)."""
    return (value - 1.0) / cost(hit.chunk) if target == "budget" else value


def expected_f(chances: Floats, beta: float, beyond: float = 0.0) -> Floats:
    """The expected F of keeping the first k, for k from 0 up, if each hit is relevant by its own
    chance, and `beyond` chunks that are not among them. Exact: over how many of the kept, and how
    many of the others, are relevant."""
    n, weight = len(chances), beta * beta
    behind = [np.ones(1)]
    for chance in chances[::-1]:
        behind.append(_one_more(behind[-1], chance))
    kept, expected = np.ones(1), np.zeros(n + 1)
    for k, chance in enumerate(chances, start=1):
        kept, lost = _one_more(kept, chance), behind[n - k]
        hits, misses = np.arange(k + 1)[:, None], np.arange(n - k + 1)[None, :]
        f = (1 + weight) * hits / (k + weight * (hits + misses + beyond))
        expected[k] = kept @ f @ lost
    return expected


def _one_more(counts: Floats, chance: float) -> Floats:
    """The distribution of how many are relevant, with one hit more."""
    return np.append(counts, 0.0) * (1 - chance) + np.append(0.0, counts) * chance


def threshold(settings: Cutoff) -> tuple[float, float]:
    """The share of relevant hits to keep, and the probability that keeps it: of the next share
    up for which there were labels enough. Raises SettingsError if there is none."""
    calibration = _known(settings)
    shares = {float(share): least for share, least in calibration.keeps.items()}
    fit = [share for share in sorted(shares) if share >= settings.recall - EPSILON]
    if not fit:
        wanted = next(share for share in SHARES if share >= settings.recall - EPSILON)
        missing = lacking(wanted, calibration)
        raise SettingsError(
            f"{calibration.relevant} labels of relevant chunks are too few to promise "
            f"{wanted:.0%} of the relevant hits that reach the cutoff.",
            remedy=f"Label at least {counted(missing, 'more relevant chunk')} and tune again, or "
            "lower cutoff.recall.",
        )
    return fit[0], shares[fit[0]]


def _known(settings: Cutoff) -> Calibration:
    assert settings.calibration is not None, "hits were weighed without a calibration"
    return settings.calibration


def labels_for(recall: float) -> int:
    """How many labels of relevant chunks a share of `recall` takes at least."""
    return math.ceil(1 / (1 - recall) - EPSILON) - 1


def lacking(share: float, calibration: Calibration) -> int:
    """How many labels of relevant chunks are missing at least for a share that the calibration
    lacks: each fold of tuning was measured with what the others had."""
    folds = calibration.folds
    return max(math.ceil(labels_for(share) * folds / (folds - 1)) - calibration.relevant, 1)


def values_of(hits: Sequence[Hit], inputs: LayerInput) -> tuple[float, ...] | None:
    """1 − probability of each hit; 1 beyond the depth that was learned on. None while rerank scores
    are missing. Raises SettingsError if nothing was learned, or with another model, space or
    reranker."""
    calibration = calibration_for(inputs.settings, inputs.pool)
    weighed = hits[: calibration.depth]
    columns = features(weighed, inputs) if weighed else {}
    if not calibration.features <= columns.keys():
        return None if weighed else ()
    relevant = probabilities(calibration, columns)
    return (*(1.0 - float(p) for p in relevant), *[1.0] * (len(hits) - len(weighed)))


SPEC = StrategySpec(
    name="calibrated",
    cut=cut,
    reads=("max_results", "min_results", "calibration", "target", "recall", "prefix"),
    reads_pool=True,
    values_of=values_of,
)
