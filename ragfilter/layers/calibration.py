"""What labels taught about relevance: a small readable model that settings carry along as JSON.

`ragfilter.evaluate.learn` makes it; applying it takes nothing but arithmetic.
docs/design.md#calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragfilter.errors import SettingsError
from ragfilter.layers.features import FEATURES, Floats
from ragfilter.layers.quality import Quality, reranker_key
from ragfilter.model import Pool, Space

REMEDY = (
    "Learn it from labels of this collection (`ragfilter tune`, or Suggest settings on the Tune "
    "page), or choose another cutoff.strategy."
)


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Split(_Value):
    """A question of a tree: `low` where the feature is at most `at`, else `high`."""

    feature: str
    at: float
    low: Split | float
    high: Split | float


class Calibration(_Value):
    """The log-odds of relevance: linear in the features, or a sum of small trees.

    The first lines say what it was learned from; `relevant` counts the labels of relevant hits that
    were found. `depth`: how many hits of each query were looked at; `beyond`: how many relevant
    chunks a query had on average that were not among them. `keeps` are the thresholds of the recall
    dial: by the share of relevant hits to keep, the probability from which on hits are kept.
    """

    collection: str
    embedder: str
    space: Space
    reranker: str
    labels: str
    queries: int
    relevant: int
    date: str
    depth: int = Field(ge=1, le=200)
    beyond: float = 0.0
    intercept: float
    weights: Mapping[str, float] = {}
    trees: tuple[Split | float, ...] = ()
    keeps: Mapping[str, float] = {}

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
    def learned_on(self) -> str:
        """The collection's name, or words for hits that a caller passed."""
        return self.collection or "hits of no named collection"

    @property
    def summary(self) -> str:
        """``11 weights learned from 149 queries of demo``."""
        kind = f"{len(self.trees)} trees" if self.trees else f"{len(self.weights)} weights"
        return f"{kind} learned from {self.queries} queries of {self.learned_on}"

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
        """Raises SettingsError where it was learned with another space, embedding model or
        reranker. A pool that does not know its embedding model is taken at its word."""
        reranker = reranker_key(quality) if self.reranker else ""
        pairs = (
            ("distances", self.space, pool.space),
            ("the embedding model", self.embedder, pool.embedder or self.embedder),
            ("the reranker", self.reranker, reranker),
        )
        other = [
            f"{what} {ours or '(not named)'}, not {theirs}"
            for what, ours, theirs in pairs
            if ours != theirs
        ]
        if other:
            raise SettingsError(
                f"The calibration was learned on {self.learned_on} with {', '.join(other)}.",
                remedy=REMEDY,
            )

    def to_json(self) -> str:
        """The text that `read` takes."""
        return self.model_dump_json(exclude_defaults=True)


def checked(text: str) -> str:
    """The text of a calibration in its one spelling, or none. Raises ValueError for any other."""
    return read(text).to_json() if text else ""


@lru_cache(maxsize=64)
def read(text: str) -> Calibration:
    """The calibration that `text` holds. Raises ValueError."""
    try:
        return Calibration.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"no calibration ({place or 'JSON'}: {first['msg']})") from None


def _read(tree: Split | float) -> frozenset[str]:
    if not isinstance(tree, Split):
        return frozenset()
    return frozenset({tree.feature}) | _read(tree.low) | _read(tree.high)


def _grown(tree: Split | float, features: Mapping[str, Floats], n: int) -> Floats:
    if not isinstance(tree, Split):
        return np.full(n, tree)
    low, high = _grown(tree.low, features, n), _grown(tree.high, features, n)
    return np.where(features[tree.feature] <= tree.at, low, high)
