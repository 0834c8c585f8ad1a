"""`Filter.batch` on all cores against one, with the same results.

`python benchmarks/bench_batch.py [--queries 2000] [--processes 2] [--rounds 3]`

Each query has 50 hits of its own with texts and scores, half of them with rules; `full` without
reranking decides. Both run by turns; the time includes starting the processes. Printed is the
median ratio of a run.
"""

from __future__ import annotations

import argparse
import os
from statistics import median
from time import perf_counter

import numpy as np

import ragfilter as rf
from ragfilter.settings.config import Given, of_profile

HITS = 50
TEXT = "Trolls number {} regenerate three points a turn, but fire and acid stop that for good. "
RULE = '{{"contain": "number {}"}}'


def hits(rng: np.random.Generator) -> list[dict[str, object]]:
    """Hits with ascending distances, as a store returns them."""
    distances = np.sort(rng.uniform(0.4, 1.4, HITS))
    return [
        {
            "id": f"c{n}",
            "text": TEXT.format(n) * 8,
            "distance": float(distance),
            "query_must": RULE.format(n) if n % 2 else None,
        }
        for n, distance in enumerate(distances)
    ]


def main() -> None:
    """Print the seconds of both, and their ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    queries = [f"How does troll number {n % HITS} regenerate?" for n in range(given.queries)]
    docs = [hits(rng) for _ in queries]
    flt = rf.Filter(of_profile("full", Given("here", {"quality.reranker": "none"})))
    seconds: dict[int, list[float]] = {1: [], given.processes: []}
    kept: dict[int, list[list[str]]] = {}
    for _ in range(given.rounds):
        for processes, times in seconds.items():
            started = perf_counter()
            results = flt.batch(queries, docs, metric="l2", processes=processes)
            times.append(perf_counter() - started)
            kept[processes] = [[hit.id for hit in result] for result in results]
    assert kept[1] == kept[given.processes]
    for processes, times in seconds.items():
        print(f"{processes} processes: {median(times):.2f} s")
    ratio = median(a / b for a, b in zip(seconds[1], seconds[given.processes], strict=True))
    print(f"{ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
