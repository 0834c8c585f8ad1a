"""The ten lines of the README over 200 hits of any store: milliseconds added to a plain loop, and what traces cost.

Processor time, medians. The hits are mappings with a title, a source and a reference each, half of them with a rule;
the profile is `full`, for the public, and no model is asked. For traces, three processes take turns: one that cannot
import OpenTelemetry, one that can, and one with `rf.trace` on and its spans kept in memory.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import ragfilter as rf

N = 200
RUNS = 200
TURNS = 10
WITHOUT, WITH, ON = "without the extra", "with the extra", "with rf.trace on"
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


def filtered(flt: rf.Filter, docs: list[dict[str, Any]], distances: list[float]) -> list[str]:
    """What a program reads of a result."""
    result = flt(QUERY, docs, distances, metric="cosine")
    kept = [hit.chunk.text for hit in result]
    assert kept
    return kept + [f"{row.title}: {row.layer}, {row.reason}" for row in result.dropped]


def median_ms(ask: Callable[[], object], runs: int = RUNS) -> float:
    """The median processor time of `ask` in milliseconds."""
    times = []
    for _ in range(runs):
        started = process_time()
        ask()
        times.append((process_time() - started) * 1000)
    return median(times)


def serve(how: str) -> None:
    """Answer every line of standard input with the milliseconds of a question."""
    if how == WITHOUT:
        sys.modules["opentelemetry"] = None  # type: ignore[assignment]
    if how == ON:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(InMemorySpanExporter()))
        rf.trace(provider)
    flt, given = rf.Filter("full"), hits()
    for _ in sys.stdin:
        print(median_ms(lambda: filtered(flt, *given), RUNS // TURNS), flush=True)


def traced_ms() -> dict[str, float]:
    """The milliseconds of a question in each of the three processes."""
    workers = {
        how: subprocess.Popen([sys.executable, __file__, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for how in (WITHOUT, WITH, ON)
    }
    times: dict[str, list[float]] = {how: [] for how in workers}
    for _ in range(TURNS + 1):
        for how, worker in workers.items():
            assert worker.stdin is not None
            assert worker.stdout is not None
            print(file=worker.stdin, flush=True)
            times[how].append(float(worker.stdout.readline()))
    for worker in workers.values():
        worker.communicate()
    # The first turn warms up.
    return {how: median(each[1:]) for how, each in times.items()}


def main() -> None:
    docs, distances = hits()
    flt = rf.Filter("full")

    def plainly() -> list[str]:
        pairs = sorted(zip(docs, distances, strict=True), key=lambda pair: pair[1])
        return [doc["text"] for doc, _ in pairs[:15]]

    filtered(flt, docs, distances)
    plain_ms, filtered_ms = median_ms(plainly), median_ms(lambda: filtered(flt, docs, distances))
    print(f"{N} hits: {filtered_ms - plain_ms:.1f} ms added to {plain_ms:.2f} ms of a plain loop (target 5 ms)")
    traced = traced_ms()
    for how, ms in traced.items():
        print(f"{how}: {ms:.2f} ms, {ms / traced[WITHOUT]:.2f} × {WITHOUT}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        main()
