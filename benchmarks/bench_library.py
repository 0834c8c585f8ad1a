"""The ten lines of the README over 200 hits of any store: milliseconds added to a plain loop.

Processor time, medians. The hits are mappings with a title, a source and a reference each, half of
them with a rule; the profile is `full`, for the public, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import ragfilter as rf

N = 200
RUNS = 200
QUERY = "What does a cleric need against armor class 6?"


def hits() -> tuple[list[dict[str, Any]], list[float]]:
    """Documents and their cosine distances, as a store returns them."""
    docs = [
        {
            "id": f"c{i}",
            "title": f"Chunk {i}",
            "text": f"A cleric of level {i % 20} attacks armor class {i % 10}. " * 8,
            "source": f"{i % 7}.md",
            "refs": [f"c{(i + 1) % N}"],
            "query_must": '{"contain":"cleric"}' if i % 2 else None,
        }
        for i in range(N)
    ]
    return docs, [0.2 + 0.003 * i for i in range(N)]


def median_ms(ask: Callable[[], object]) -> float:
    """The median processor time of `ask` in milliseconds."""
    times = []
    for _ in range(RUNS):
        started = process_time()
        ask()
        times.append((process_time() - started) * 1000)
    return median(times)


def main() -> None:
    docs, distances = hits()
    flt = rf.Filter("full")

    def plainly() -> list[str]:
        pairs = sorted(zip(docs, distances, strict=True), key=lambda pair: pair[1])
        return [doc["text"] for doc, _ in pairs[:15]]

    def filtered() -> list[str]:
        result = flt(QUERY, docs, distances, metric="cosine")
        kept = [hit.chunk.text for hit in result]
        assert kept
        return kept + [f"{row.title}: {row.layer}, {row.reason}" for row in result.dropped]

    filtered()
    plain_ms, filtered_ms = median_ms(plainly), median_ms(filtered)
    print(f"{N} hits: {filtered_ms - plain_ms:.1f} ms added to {plain_ms:.2f} ms of a plain loop (target 5 ms)")


if __name__ == "__main__":
    main()
