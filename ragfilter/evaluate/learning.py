"""Learn from some queries, measure on the others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.crossval import Choice
from ragfilter.evaluate.learn import Example, Learned, Provenance, example, learn
from ragfilter.evaluate.sweep import Outcome, sweep
from ragfilter.evaluate.target import Target
from ragfilter.layers.calibration import read
from ragfilter.model import Pool, User
from ragfilter.settings.schema import Settings

LEAST = 10
"""Labelled queries below which nothing is learned."""


class Learning:
    """Labelled queries, each with what comes into the cutoff under every one of `bases`. Raises
    ValueError for fewer than `LEAST`."""

    def __init__(
        self, pools: Mapping[str, Pool], qrels: Qrels, bases: Sequence[Settings], user: User
    ) -> None:
        if len(pools) < LEAST:
            raise ValueError(f"learning needs at least {LEAST} labelled queries")
        self.pools, self.qrels, self.user = pools, qrels, user
        self.examples: dict[Settings, list[Example]] = {
            base: [example(pool, qrels[i], base, user) for i, pool in pools.items()]
            for base in bases
        }

    def learn(self, places: Choice, provenance: Provenance, target: Target) -> Learned:
        """What the queries at these places teach. Raises ValueError if that is nothing."""
        some = {base: [each[i] for i in places] for base, each in self.examples.items()}
        return learn(some, next(iter(self.pools.values())), provenance, target)

    def by_fold(self, folds: Choice, provenance: Provenance, target: Target) -> dict[int, Learned]:
        """What all queries but those of a fold teach, by fold. Raises ValueError."""
        return {
            int(fold): self.learn(np.flatnonzero(folds != fold), provenance, target)
            for fold in np.unique(folds)
        }

    def held_out(self, learned: Mapping[int, Learned], folds: Choice) -> list[list[Outcome]]:
        """Every query under what was learned without it."""
        return [
            sweep({i: pool}, self.qrels, [learned[int(fold)].settings], self.user)[0]
            for (i, pool), fold in zip(self.pools.items(), folds, strict=True)
        ]

    def dial(self, learned: Mapping[int, Learned], folds: Choice) -> dict[str, float]:
        """By the share of relevant hits to keep, the share kept of those on held-out queries."""
        known = {fold: read(each.settings.cutoff.calibration) for fold, each in learned.items()}
        shares = set.intersection(*(set(about.keeps) for about in known.values()))
        made = {}
        for share in sorted(shares):
            found = kept = 0.0
            for fold, each in learned.items():
                about = known[fold]
                base = next(b for b in self.examples if b.quality == each.settings.quality)
                for place in np.flatnonzero(folds == fold):
                    one = self.examples[base][place]
                    if one.features:
                        stays = about.probabilities(one.features) >= about.keeps[share]
                        stays[: one.pinned] = True
                        found += one.relevant.sum()
                        kept += (one.relevant * stays).sum()
            made[share] = float(kept / found) if found else 1.0
        return made
