"""What labels taught about relevance: a small readable model that is stored in settings as JSON.

`ragfilter.evaluate.learning` makes it. Applying it takes only arithmetic.
docs/design.md#calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from pydantic import Field, model_validator

from ragfilter.errors import SettingsError
from ragfilter.layers.features import FEATURES, Floats
from ragfilter.layers.origin import CarriedValue, Origin, parse
from ragfilter.layers.quality import Quality
from ragfilter.model import Pool

REMEDY = "Learn it from labels of this collection by tuning, or choose another cutoff.strategy."


class Split(CarriedValue):
    """A question of a tree: `low` where the feature is at most `at`, else `high`."""

    feature: str
    at: float
    low: Split | float
    high: Split | float


class Calibration(Origin):
    """The log-odds of relevance: linear in the features, or a sum of small trees.

    `relevant` counts the labels of relevant hits that were found. `depth`: how many hits of each
    query were looked at; `beyond`: how many relevant chunks a query had on average that were not
    among them. `keeps` are the thresholds of the recall dial: by the share of relevant hits to
    keep, the probability from which on hits are kept. `held_out`: by the same share, the share that
    was kept on held-out queries, in so many `folds`.
    """

    relevant: int
    depth: int = Field(ge=1, le=200)
    beyond: float = 0.0
    folds: int = Field(default=5, ge=2)
    intercept: float
    weights: Mapping[str, float] = {}
    trees: tuple[Split | float, ...] = ()
    keeps: Mapping[str, float] = {}
    held_out: Mapping[str, float] = {}

    @model_validator(mode="after")
    def _known(self) -> Calibration:
        unknown = sorted(self.features - FEATURES.keys())
        if unknown:
            raise ValueError(f"unknown feature {unknown[0]}")
        return self

    @property
    def features(self) -> frozenset[str]:
        """The features that it reads."""
        return frozenset(self.weights).union(*map(_read, self.trees))

    @property
    def summary(self) -> str:
        """``11 weights learned from 149 queries of demo``."""
        kind = f"{len(self.trees)} trees" if self.trees else f"{len(self.weights)} weights"
        return f"{kind} learned from {self.queries} queries of {self.place}"

    def probabilities(self, features: Mapping[str, Floats]) -> Floats:
        """How likely each hit is relevant. Raises KeyError for a feature that is missing."""
        n = len(next(iter(features.values())))
        odds = np.full(n, self.intercept)
        for name, weight in self.weights.items():
            odds += weight * features[name]
        for tree in self.trees:
            odds += _grown(tree, features, n)
        return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))))

    def check_fits(self, pool: Pool, quality: Quality) -> None:
        """Raises SettingsError if it was learned with another space, embedding model or
        reranker."""
        other = self.differences(pool, quality)
        if other:
            raise SettingsError(
                f"The calibration was learned on {self.place} with {other}.",
                remedy=REMEDY,
                action="tune",
            )


@lru_cache(maxsize=64)
def read(text: str) -> Calibration:
    """The calibration that `text` holds. Raises ValueError."""
    return parse(Calibration, text, "calibration")


def _read(tree: Split | float) -> frozenset[str]:
    if not isinstance(tree, Split):
        return frozenset()
    return frozenset({tree.feature}) | _read(tree.low) | _read(tree.high)


def _grown(tree: Split | float, features: Mapping[str, Floats], n: int) -> Floats:
    if not isinstance(tree, Split):
        return np.full(n, tree)
    low, high = _grown(tree.low, features, n), _grown(tree.high, features, n)
    return np.where(features[tree.feature] <= tree.at, low, high)
