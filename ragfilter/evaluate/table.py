"""The table of an evaluation, computed from its records: means with 95% intervals. Pure.

Two rows are computed here. The best fixed k is cross-validated: every query is measured with the k
that was best on the other folds. The oracle keeps the prefix with the best F1 of each query's
unfiltered ranking, the best that this order allows. It is not an upper bound: settings that drop
chunks from within that order, or change it, can exceed it.

Conventions are those of `metrics`: nothing kept is 0, or 1 if nothing is relevant.
A kept chunk without a label counts as irrelevant; `f1_most` is F1 if all of them were relevant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from ragfilter.evaluate import metrics
from ragfilter.evaluate.crossval import (
    FOLDS,
    Choice,
    Interval,
    Tables,
    folds_of,
    interval,
    intervals,
)
from ragfilter.evaluate.prefixes import DEEPEST, best_fixed_k, by_k, oracle, prefixes
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.variants import IN_FORCE, Group, Variant
from ragfilter.layers.origin import origin

if TYPE_CHECKING:
    from ragfilter.answer.stream import Prices

MEASURES = (
    "precision", "recall", "f1", "f2", "ndcg", "chunks", "tokens", "ms", "unlabelled", "f1_most",
)  # fmt: skip
_COUNTS = ("chunks", "tokens", "ms", "unlabelled")
FIXED, ORACLE = "best fixed k", "oracle"
ABOUT_ORACLE = (
    f"the best prefix of each query's unfiltered ranking, within its first {DEEPEST} chunks, "
    "chosen by the labels; settings that reorder these chunks, or drop some from the middle, can "
    "exceed it"
)
_COUNTED = attrgetter("chunks", "relevant", "unlabelled", "tokens", "ndcg", "ms")
ABOUT_LAYERS = (
    "Layers that are off are not listed. The judge, which calls an LLM, is listed if it is on: "
    "it is added last, and the other layers are measured without it."
)


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `about` explains it if the name does not. `means` has every measure, but no ``ms``
    if nothing is decided and so there is nothing to time."""

    name: str
    group: Group | str
    means: Mapping[str, Interval]
    about: str = ""


@dataclass(frozen=True, slots=True)
class LayerGain:
    """The value of a layer: F1, recall and tokens with it, minus those without it."""

    layer: str
    group: Group
    f1: Interval
    recall: Interval
    tokens: Interval


def table(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> tuple[Row, ...]:
    """The rows of the table in order. Empty without records. With one query nothing can be
    cross-validated, so the best fixed k is left out."""
    if not records:
        return ()
    rows = [_row(v.name, v.group, figures_of(records, v.name), _about(v), timed=not v.plain)
            for v in measured(records, variants)
            if v.group not in ("added", "left out")]  # fmt: skip
    orders = prefixes_of(records)
    if len(records) > 1:
        k, fixed = best_fixed_k(orders, _folds(records))
        about = f"{k} over all queries; each is measured with the k that is best on the others"
        rows.insert(2, _row(FIXED, "plain", fixed, about))
    return (*rows, _row(ORACLE, "oracle", oracle(orders), ABOUT_ORACLE))


def cost(row: Row, prices: Prices) -> Interval:
    """The cost of the prompts of 1,000 questions: the priced mean of the tokens, with its
    interval."""
    tokens = row.means["tokens"]
    return tokens.mapped(prices.of_thousand)


def layer_gains(
    records: Sequence[QueryRecord], variants: Sequence[Variant]
) -> tuple[LayerGain, ...]:
    """What every layer adds to those before it, and what the whole loses without it. The judge, if
    it is on, is added last; leaving out another layer is measured without the judge."""
    if not records:
        return ()
    made = []
    variants = measured(records, variants)
    added = [v.name for v in variants if v.group == "added"]
    for before, after in pairwise(added):
        made.append(_gain(after, "added", records, with_=after, without=before))
    own = next(v for v in variants if v.name == IN_FORCE)
    if own.settings.judge.enabled:
        made.append(_gain("judge", "added", records, with_=IN_FORCE, without=added[-1]))
    for variant in variants:
        if variant.group == "left out":
            made.append(_gain(variant.name, "left out", records, with_=added[-1],
                              without=variant.name))  # fmt: skip
    return tuple(made)


def measured(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """The variants that every record holds. A run of an earlier version lacks those added since."""
    return tuple(v for v in variants if all(v.name in record.kept for record in records))


def figures_of(records: Sequence[QueryRecord], name: str) -> Tables:
    """Every measure of one variant, by query."""
    kept = [_COUNTED(record.kept[name]) for record in records]
    table = np.array(kept, dtype=np.float64).reshape(-1, 6)
    chunks, relevant, unlabelled, tokens, ndcg, ms = table.T
    counts = metrics.Counts(chunks, relevant, unlabelled, tokens)
    found = metrics.figures(counts, [record.relevant for record in records])
    return {**found, "chunks": chunks, "ndcg": ndcg, "ms": ms}


def prefixes_of(records: Sequence[QueryRecord]) -> Tables:
    """Every measure but the time of every first k of the unfiltered ranking; see `prefixes`."""
    found = prefixes([each.curve for each in records], [each.relevant for each in records])
    ndcg = np.stack([by_k(each.ndcg, float(not each.relevant)) for each in records])
    return {**found, "chunks": found["kept"], "ndcg": ndcg}


def over_fixed_k(records: Sequence[QueryRecord]) -> Interval:
    """The gain in F1 of the run's settings over the best fixed k, for at least two queries; each is
    measured with the k that is best on the other folds."""
    _, fixed = best_fixed_k(prefixes_of(records), _folds(records))
    return interval(figures_of(records, IN_FORCE)["f1"] - fixed["f1"])


def _folds(records: Sequence[QueryRecord]) -> Choice:
    return folds_of([record.query for record in records], FOLDS)


def _row(name: str, group: str, figures: Tables, about: str, *, timed: bool = False) -> Row:
    shown = [measure for measure in MEASURES if timed or measure != "ms"]
    most = [np.inf if measure in _COUNTS else 1.0 for measure in shown]
    means = intervals(np.stack([figures[measure] for measure in shown], axis=1), 0.0, most)
    return Row(name, group, dict(zip(shown, means, strict=True)), about)


def _gain(
    name: str, group: Group, records: Sequence[QueryRecord], *, with_: str, without: str
) -> LayerGain:
    after, before = figures_of(records, with_), figures_of(records, without)
    apart = np.stack([after[m] - before[m] for m in ("f1", "recall", "tokens")], axis=1)
    f1, recall, tokens = intervals(apart)
    return LayerGain(name.lstrip("+− "), group, f1, recall, tokens)


def _about(variant: Variant) -> str:
    settings = variant.settings
    if variant.plain:
        return f"the first {settings.retrieval.k}"
    found = origin(settings)
    if found is None:
        return ""
    return (
        f"{found.summary}; its figures on those are better than on new ones, and Tune shows how "
        "good it is on held-out questions"
    )
