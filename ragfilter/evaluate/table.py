"""The table of an evaluation, computed from its records: means with bootstrapped 95% intervals.
Pure.

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
from itertools import accumulate, pairwise
from math import log2
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ragfilter.evaluate.crossval import (
    FOLDS,
    Interval,
    Table,
    bootstrap,
    bootstrap_each,
    choose,
    folds_of,
    pick,
)
from ragfilter.evaluate.records import Kept, QueryRecord
from ragfilter.evaluate.sweep import DEEPEST
from ragfilter.evaluate.target import Target
from ragfilter.evaluate.variants import IN_FORCE, Group, Variant
from ragfilter.layers.in_force import origin

if TYPE_CHECKING:
    from ragfilter.answer.stream import Prices

MEASURES = (
    "precision", "recall", "f1", "f2", "ndcg", "chunks", "tokens", "ms", "unlabelled", "f1_most",
)  # fmt: skip
FIXED, ORACLE = "best fixed k", "oracle"
ABOUT_ORACLE = (
    f"the best prefix of each query's unfiltered ranking, within its first {DEEPEST} chunks, "
    "chosen by the labels; settings that reorder these chunks, or drop some from the middle, can "
    "exceed it"
)
ABOUT_LAYERS = (
    "Layers that are off are not listed. The judge, which calls an LLM, is listed if it is on: "
    "it is added last, and the other layers are measured without it."
)
Figures = Mapping[str, NDArray[np.float64]]
"""Every measure, with a value for each query."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row. `about` explains it if the name does not. `means` has every measure, but no ``ms``
    if nothing is decided and so there is nothing to time."""

    name: str
    group: Group | str
    means: Mapping[str, Interval]
    about: str = ""


@dataclass(frozen=True, slots=True)
class Gain:
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
    ranked = prefixes(records)
    if len(records) > 1:
        folds = folds_of([record.query for record in records], FOLDS)
        chosen = Target().held_out(ranked, folds)
        k = 1 + choose(ranked["f1"])
        about = f"{k} over all queries; each is measured with the k that is best on the others"
        rows.insert(2, _row(FIXED, "plain", picked(ranked, chosen), about))
    ranked = or_nothing(records)
    best = np.argmax(ranked["f1"], axis=1)
    return (*rows, _row(ORACLE, "oracle", picked(ranked, best), ABOUT_ORACLE))


def cost(row: Row, prices: Prices) -> Interval:
    """The cost of the prompts of 1,000 questions: the priced mean of the tokens, with its
    interval."""
    tokens = row.means["tokens"]
    mean, low, high = map(prices.of_thousand, (tokens.mean, tokens.low, tokens.high))
    return Interval(mean, low, high)


def layer_gains(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> tuple[Gain, ...]:
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


def figures_of(records: Sequence[QueryRecord], name: str) -> Figures:
    """Every measure of one variant, by query."""
    kept = [record.kept[name] for record in records]
    return _figures(
        *(_column(kept, field) for field in ("chunks", "relevant", "unlabelled", "dcg")),
        relevant=np.array([record.relevant for record in records], dtype=np.float64),
        ideal=np.array([record.ideal for record in records]),
        tokens=_column(kept, "tokens"),
        ms=_column(kept, "ms"),
    )


def prefixes(records: Sequence[QueryRecord]) -> Figures:
    """Every measure of the first k of the unfiltered ranking that fit the prompt: one row per
    query, one column per k."""
    fitting = [[b > a for a, b in pairwise((0, *r.curve.tokens))] for r in records]
    places = [list(accumulate(each)) for each in fitting]
    # What does not fit counts as nothing, at no place.
    grades = [[g if fit else None for g, fit in zip(r.curve.grades, each, strict=True)]
              for r, each in zip(records, fitting, strict=True)]  # fmt: skip
    found = _padded([accumulate(int((g or 0) > 0) for g in each) for each in grades])
    unlabelled = _padded([accumulate(int((g or 0) < 0) for g in each) for each in grades])
    gains = _padded([
        accumulate(max(g or 0, 0) / log2(place + 1) for place, g in zip(at, each, strict=True))
        for at, each in zip(places, grades, strict=True)
    ])  # fmt: skip
    return _figures(
        _padded(places), found, unlabelled, gains,
        relevant=np.array([[r.relevant] for r in records], dtype=np.float64),
        ideal=np.array([[r.ideal] for r in records]),
        tokens=_padded([r.curve.tokens for r in records]),
    )  # fmt: skip


def over_fixed_k(records: Sequence[QueryRecord]) -> Interval:
    """The gain in F1 of the run's settings over the best fixed k, for at least two queries; each is
    measured with the k that is best on the other folds."""
    ranked = prefixes(records)
    chosen = Target().held_out(ranked, folds_of([record.query for record in records], FOLDS))
    fixed = pick(ranked["f1"], chosen)
    return bootstrap(figures_of(records, IN_FORCE)["f1"] - fixed)


def or_nothing(records: Sequence[QueryRecord]) -> Figures:
    """The prefixes, with nothing kept as the last column. So the first of several equal columns
    keeps something, and nothing kept is best if nothing is relevant."""
    none = np.zeros((len(records), 1))
    relevant = np.array([[float(r.relevant)] for r in records])
    empty = _figures(none, none, none, none, relevant=relevant, ideal=relevant, tokens=none)
    return {n: np.hstack([values, empty[n]]) for n, values in prefixes(records).items()}


def _figures(
    chunks: Table,
    found: Table,
    unlabelled: Table,
    dcg: Table,
    *,
    relevant: Table,
    ideal: Table,
    tokens: Table,
    ms: Table | None = None,
) -> Figures:
    nothing = (chunks == 0) & (relevant == 0)
    precision = _ratio(found, chunks, nothing)
    recall = np.where(relevant == 0, 1.0, _ratio(found, relevant, nothing))
    best = 2 * (found + unlabelled)
    return {
        "precision": precision,
        "recall": recall,
        "f1": np.where(relevant == 0, nothing * 1.0, f_measure(precision, recall, 1.0)),
        "f2": np.where(relevant == 0, nothing * 1.0, f_measure(precision, recall, 2.0)),
        "ndcg": _ratio(dcg, ideal, nothing),
        "chunks": chunks,
        "tokens": tokens,
        **({} if ms is None else {"ms": ms}),
        "unlabelled": unlabelled,
        "f1_most": _ratio(best, chunks + relevant + unlabelled, nothing),
    }


def f_measure(precision: Table, recall: Table, beta: float) -> Table:
    weight = beta * beta
    zero = np.zeros_like(precision, dtype=bool)
    return _ratio((1 + weight) * precision * recall, weight * precision + recall, zero)


def _ratio(above: Table, below: Table, otherwise: NDArray[np.bool_]) -> Table:
    """above / below; if `below` is 0, 1 if `otherwise` is set, else 0."""
    below = np.broadcast_to(below, np.broadcast_shapes(np.shape(above), np.shape(below)))
    safe = np.where(below == 0, 1.0, below)
    return np.where(below == 0, otherwise * 1.0, above / safe)


def _padded(rows: Sequence[object]) -> Table:
    """Rows of at most `DEEPEST` values, each padded with its last value (0 if it is empty)."""
    made = np.zeros((len(rows), DEEPEST))
    for place, row in enumerate(rows):
        values = np.array(list(row), dtype=np.float64)  # type: ignore[call-overload]
        if len(values):
            made[place, : len(values)] = values
            made[place, len(values) :] = values[-1]
    return made


def picked(ranked: Figures, chosen: NDArray[np.intp]) -> Figures:
    return {name: pick(values, chosen) for name, values in ranked.items()}


def _column(kept: Sequence[Kept], field: str) -> Table:
    return np.array([getattr(one, field) for one in kept], dtype=np.float64)


def _row(name: str, group: str, figures: Figures, about: str, *, timed: bool = False) -> Row:
    shown = [measure for measure in MEASURES if timed or measure != "ms"]
    means = bootstrap_each(np.stack([figures[measure] for measure in shown], axis=1))
    return Row(name, group, dict(zip(shown, means, strict=True)), about)


def _gain(
    name: str, group: Group, records: Sequence[QueryRecord], *, with_: str, without: str
) -> Gain:
    after, before = figures_of(records, with_), figures_of(records, without)
    apart = np.stack([after[m] - before[m] for m in ("f1", "recall", "tokens")], axis=1)
    f1, recall, tokens = bootstrap_each(apart)
    return Gain(name.lstrip("+− "), group, f1, recall, tokens)


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
