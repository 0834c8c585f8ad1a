"""The map of gap threshold against distance offset: 50 × 50 settings, 100 queries, depth 200.

CPU time of the figures alone, and of the whole map, which first ranks the hits of every query. The
target of either is 100 ms. Run: PYTHONPATH=. python benchmarks/bench_grid.py
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from ragfilter.evaluate.maps import FINE, OFFSET, THRESHOLD, figures, gap_cuts, make, rankings
from ragfilter.model import PUBLIC, Chunk, Hit, Pool
from ragfilter.settings.config import load

QUERIES, DEPTH, TIMES = 100, 200, 20


def main() -> None:
    settings = load(profile="adaptive-gap", environ={}).settings
    settings = settings.with_values({"cutoff.max_results": DEPTH})
    rng = np.random.default_rng(0)
    chunks = [Chunk(f"c{i}", "word " * 80) for i in range(DEPTH)]
    pools = {}
    for query in range(QUERIES):
        distances = np.sort(rng.random(DEPTH) + 0.5)
        hits = (Hit(chunk, float(d), i) for i, (chunk, d) in enumerate(zip(chunks, distances, strict=True), 1))
        pools[str(query)] = Pool("q", "c", "l2", tuple(hits), exhaustive=True)
    qrels = {i: {f"c{n}": 1 for n in rng.integers(0, DEPTH, 8)} for i in pools}
    ranked = rankings(pools, qrels, settings)
    thresholds, offsets = np.linspace(0, 0.5, FINE), np.linspace(0, 1.5, FINE)
    grid = ms(lambda: figures(ranked, gap_cuts(ranked, settings.cutoff, thresholds, offsets)))
    whole = ms(lambda: make(pools, qrels, settings, PUBLIC, THRESHOLD, OFFSET))
    print(f"figures {grid:.1f} ms, whole map {whole:.1f} ms (target 100 ms)")


def ms(call: Callable[[], object]) -> float:
    """The median CPU time of a call."""
    times = []
    for _ in range(TIMES):
        began = process_time()
        call()
        times.append((process_time() - began) * 1000)
    return median(times)


if __name__ == "__main__":
    main()
