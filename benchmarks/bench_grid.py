"""The map of gap threshold against distance offset: 50 × 50 settings, 100 queries, depth 200.

The target is 100 ms. Run: PYTHONPATH=. python benchmarks/bench_grid.py
"""

from __future__ import annotations

from statistics import median
from time import perf_counter

import numpy as np

from ragfilter.evaluate.grid import figures, gap_cuts, rankings
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.settings.config import load

QUERIES, DEPTH, SIDE, TIMES = 100, 200, 50, 20


def main() -> None:
    settings = load(profile="adaptive-gap", environ={}).settings
    settings = settings.with_values({"cutoff.max_results": DEPTH})
    rng = np.random.default_rng(0)
    chunks = [Chunk(f"c{i}", "word " * 80) for i in range(DEPTH)]
    pools = {}
    for query in range(QUERIES):
        distances = np.sort(rng.random(DEPTH) + 0.5)
        hits = (
            Hit(chunk, float(d), i)
            for i, (chunk, d) in enumerate(zip(chunks, distances, strict=True), 1)
        )
        pools[str(query)] = Pool("q", "c", "l2", tuple(hits), complete=True)
    qrels = {i: {f"c{n}": 1 for n in rng.integers(0, DEPTH, 8)} for i in pools}
    began = perf_counter()
    ranked = rankings(pools, qrels, settings)
    prepared = perf_counter() - began
    thresholds, offsets = np.linspace(0, 0.5, SIDE), np.linspace(0, 1.5, SIDE)
    times = []
    for _ in range(TIMES):
        began = perf_counter()
        figures(ranked, gap_cuts(ranked, settings.cutoff, thresholds, offsets))
        times.append((perf_counter() - began) * 1000)
    print(f"prepared once in {prepared * 1000:.0f} ms; map {median(times):.1f} ms (target 100 ms)")


if __name__ == "__main__":
    main()
