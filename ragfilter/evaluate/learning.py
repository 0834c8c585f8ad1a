"""Learns from some queries and measures on the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.crossval import Choice, Table
from ragfilter.evaluate.learn import Learned, Provenance, TrainingExample, example, learn
from ragfilter.evaluate.metrics import FIGURES
from ragfilter.evaluate.sweep import sweep
from ragfilter.evaluate.target import Target
from ragfilter.layers.calibration import probabilities
from ragfilter.model import Pool, User
from ragfilter.settings.schema import Settings

LEAST = 10
"""With fewer labelled queries, nothing is learned."""

Examples = Mapping[Settings, Sequence[TrainingExample]]
"""The cutoff's input for every query, for each of several settings."""


@dataclass(frozen=True, slots=True)
class Lessons:
    """What was learned from the labelled queries: from all (`whole`), and per fold from the other
    folds.

    `figures` are those of each query with what was learned without it, and `budget` those if the
    context budget decides how many chunks are kept. `dial` maps the share of relevant hits to keep
    to the share that was kept on held-out queries.
    """

    whole: Learned
    by_fold: Mapping[int, Learned]
    figures: dict[str, Table]
    budget: dict[str, Table]
    dial: Mapping[str, float]


def learn_by_fold(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    bases: Sequence[Settings],
    user: User | None,
    folds: Choice,
    provenance: Provenance,
    target: Target,
) -> Lessons:
    """Learn what can follow each of `bases`, leaving out one fold at a time. Raises ValueError for
    fewer than `LEAST` queries, and if there is nothing to learn."""
    if len(pools) < LEAST:
        raise ValueError(f"learning needs at least {LEAST} labelled queries")
    examples = {
        base: [example(pool, qrels[i], base, user) for i, pool in pools.items()] for base in bases
    }
    some = next(iter(pools.values()))

    def learned(places: Choice) -> Learned:
        chosen = {base: [each[i] for i in places] for base, each in examples.items()}
        return learn(chosen, some, provenance, target)

    by_fold = {int(fold): learned(np.flatnonzero(folds != fold)) for fold in np.unique(folds)}
    made = [
        sweep({i: pool}, qrels, _ways(by_fold[int(fold)].settings), user)
        for (i, pool), fold in zip(pools.items(), folds, strict=True)
    ]
    figures, budget = (
        {name: np.concatenate([one[name][:, way] for one in made]) for name in FIGURES}
        for way in (0, 1)
    )
    return Lessons(
        whole=learned(np.arange(len(pools))),
        by_fold=by_fold,
        figures=figures,
        budget=budget,
        dial=_dial(examples, by_fold, folds),
    )


def _ways(learned: Settings) -> tuple[Settings, Settings]:
    """What was learned, for the target and to fill the context budget."""
    return learned, learned.with_values({"cutoff.target": "budget"})


def _dial(examples: Examples, learned: Mapping[int, Learned], folds: Choice) -> dict[str, float]:
    known = {}
    for fold, each in learned.items():
        assert each.settings.cutoff.calibration is not None
        known[fold] = each.settings.cutoff.calibration
    shares = set.intersection(*(set(about.keeps) for about in known.values()))
    made = {}
    for share in sorted(shares):
        found = kept = 0.0
        for fold, each in learned.items():
            about = known[fold]
            base = next(b for b in examples if b.quality == each.settings.quality)
            for place in map(int, np.flatnonzero(folds == fold)):
                one = examples[base][place]
                if one.features:
                    stays = probabilities(about, one.features) >= about.keeps[share]
                    stays[: one.pinned] = True
                    found += one.relevant.sum()
                    kept += (one.relevant * stays).sum()
        made[share] = float(kept / found) if found else 1.0
    return made
