"""Whether a search by words beside the vectors helps `full`.

Over the sets of `benchmark.py`, mean F1 of `full`; of `full` over what either search found, cut by
the distance as before; and of `full` cut by the fused order after k chunks, with the k that is best
on the other folds. Each beside `full` on the same questions, with the interval of the difference.

Run: PYTHONPATH=. python benchmarks/lexical.py OUT CRANFIELD PAGES
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.benchmark import measured_sets
from ragfilter.evaluate.crossval import assign_folds, interval
from ragfilter.evaluate.measure import gather_all
from ragfilter.evaluate.sweep import sweep
from ragfilter.evaluate.wording import gain
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings

FOLDS = 5
MOST = 15


def main(out: Path, cranfield: Path, pages: Path) -> None:
    full = load(profile="full", environ={}).settings
    words = full.with_values({"retrieval.lexical": True})
    fused = [
        words.with_values(
            {"cutoff.score": "fused", "cutoff.strategy": "fixed", "cutoff.max_results": k}
        )
        for k in range(1, MOST + 1)
    ]
    for name, labels, backends in measured_sets(out, cranfield, pages):
        asked = {i: text for i, text in labels.queries.items() if i in labels.qrels}
        pools = gather_all(asked, words, backends)
        settings: list[Settings] = [full, words, *fused]
        table = sweep(pools, labels.qrels, settings)["f1"]
        before, either, by_k = table[:, 0], table[:, 1], table[:, 2:]
        folds = assign_folds(len(table), FOLDS)
        best = [int(np.argmax(by_k[folds != fold].mean(axis=0))) for fold in range(FOLDS)]
        order = by_k[np.arange(len(table)), [best[fold] for fold in folds]]
        print(f"{name} ({len(table)}): full {before.mean():.3f}")
        for what, each in (("both searches", either), ("fused order", order)):
            print(f"  {what:14s} {each.mean():.3f}  {gain(interval(each - before))}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
