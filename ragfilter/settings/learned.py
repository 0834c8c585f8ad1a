"""What labels chose or taught: records that tuning writes into the settings of the cutoff.

`ragfilter.evaluate` makes them, `ragfilter.layers.origin` refuses them where they do not apply, and
`ragfilter.layers.strategies.calibrated` computes with them. docs/design.md#tune and #calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from ragfilter.settings.field import Section, SettingTable
from ragfilter.text.numbers import counted

Space = Literal["l2", "cosine", "ip", "rank"]
"""How distances are measured. ``rank``: the store gives an order only; a hit's distance is then its
1-based place."""

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
"""What a calibration may look at, with the meaning of each."""
MIN_LABELLED = 10
"""With fewer labelled queries, nothing is learned."""


class Origin(SettingTable):
    """The labels behind a value, and what its scale depends on. `queries` counts those that had
    labels; an empty `reranker` is none. `date` is in ISO format. `guess`: the value was carried
    over to this model and space from others, without labels."""

    collection: str
    embedder: str
    space: Space
    reranker: str
    labels: str
    queries: int
    # TOML has dates of its own.
    date: Annotated[str, BeforeValidator(str)]
    guess: bool = False

    @property
    def place(self) -> str:
        """The collection's name, or words for hits that a caller passed."""
        return self.collection or "hits without a collection name"


class TunedOn(Origin):
    """What labels chose: the strategy (empty if there is no cutoff), and values by dotted path.
    `score` is the named score that it cuts by; empty for the distance. `quantiles`: by the path of
    a threshold, the share of the hits that were below it."""

    strategy: str
    score: str = ""
    values: Mapping[str, int | float] = {}
    quantiles: Mapping[str, float] = {}
    values_only: bool = False
    """Whether labels chose only the values, as by a click on the map, of a strategy that was set
    by hand."""

    @property
    def summary(self) -> str:
        """``gap, tuned on 149 queries of demo``."""
        chosen = self.strategy or "limits"
        how = "carried over, a guess" if self.guess else "tuned"
        return f"{chosen}, {how} on {counted(self.queries, 'query')} of {self.place}"


class Split(Section):
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
    keep, the lowest probability that is kept. `held_out`: by the same share, the share that was
    kept on held-out queries, in so many `folds`.
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
        return frozenset(self.weights).union(*map(_features_of, self.trees))

    @property
    def summary(self) -> str:
        """``11 weights learned from 149 queries of demo``."""
        kind = f"{len(self.trees)} trees" if self.trees else f"{len(self.weights)} weights"
        guess = ", carried over, a guess" if self.guess else ""
        return f"{kind} learned from {self.queries} queries of {self.place}{guess}"


def _features_of(tree: Split | float) -> frozenset[str]:
    if not isinstance(tree, Split):
        return frozenset()
    return frozenset({tree.feature}) | _features_of(tree.low) | _features_of(tree.high)
