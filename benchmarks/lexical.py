"""Whether a search by words beside the vectors helps `full`.

Over the sets of `benchmark.py`, mean F1 of `full`; of `full` over what either search found, cut by
the distance as before; and of `full` cut by the fused order after k chunks, with the k that is best
on the other folds; and of `full` over both with the limits by score that are best on the other
folds. Each beside `full` on the same questions, with the interval of the difference.

Run: PYTHONPATH=. python benchmarks/lexical.py OUT CRANFIELD PAGES
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.benchmark import measured_sets
from ragfilter.evaluate.crossval import Target, assign_folds, interval, pick
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.sweep import sweep
from ragfilter.evaluate.wording import gain
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings

FOLDS = 5
MOST = 15
PLACES = (1, 2, 3, 5, 10, 20)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)
"""Limits: places in the search by words, and shares of the first 50 hits that are nearer."""


def main(out: Path, cranfield: Path, pages: Path) -> None:
    full = load(profile="full", environ={}).settings
    words = full.with_values({"retrieval.lexical": True})
    fused = [
        words.with_values({"cutoff.score": "fused", "cutoff.strategy": "fixed", "cutoff.max_results": k})
        for k in range(1, MOST + 1)
    ]
    for name, labels, backends in measured_sets(out, cranfield, pages):
        questions = {i: text for i, text in labels.queries.items() if i in labels.qrels}
        pools = completed_pools(questions, words, backends)
        near = np.quantile([hit.distance for p in pools.values() for hit in p.hits[:50]], SHARES)
        dense, lexical = [f"dense={d:.3f}" for d in near], [f"lexical={n}" for n in PLACES]
        both = [f"{one} {other}" for one in dense for other in lexical]
        limited = [words.with_values({"cutoff.limits": each}) for each in (*dense, *lexical, *both)]
        settings: list[Settings] = [full, words, *fused, *limited]
        table = sweep(pools, labels.qrels, settings)["f1"]
        before, either = table[:, 0], table[:, 1]
        folds = assign_folds(len(table), FOLDS)
        target, last = Target(), len(fused) + 2
        order, within = (
            pick(each, target.held_out({"f1": each}, folds))
            for each in (table[:, 2:last], np.hstack((table[:, 1:2], table[:, last:])))
        )
        print(f"{name} ({len(table)}): full {before.mean():.3f}")
        for what, each in (("both searches", either), ("fused order", order), ("with limits", within)):
            print(f"  {what:14s} {each.mean():.3f}  {gain(interval(each - before))}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
