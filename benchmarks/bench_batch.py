"""`Filter.batch` beside a loop over the same questions: seconds, and what it gains.

    PYTHONPATH=. python benchmarks/bench_batch.py [--questions 2000]

The hits are those of `bench_library.py`, in profile `full` without a model. The workers have started before the time is
taken. Results of a batch are decoded when they are first read, so the seconds with every result read are stated too,
and the processor time to decide over the hits of one question, to write its result and to read it.
"""

from __future__ import annotations

import argparse
import gc
from time import perf_counter

import ragfilter as rf
from benchmarks.bench_library import QUERY, hits, median_ms
from ragfilter.library.batch import encode


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=2000)
    n = parser.parse_args().questions
    docs, distances = hits()
    scored = list(zip(docs, distances, strict=True))
    flt = rf.Filter("full")

    def decide() -> rf.Result:
        return flt(QUERY, scored, metric="cosine")

    packed = encode(decide())
    deciding, writing = median_ms(decide), median_ms(lambda: encode(decide()))
    reading = median_ms(lambda: len(rf.Result.from_bytes(packed)))
    flt.batch([QUERY] * 100, [scored] * 100, metric="cosine")
    gc.freeze()
    started = perf_counter()
    alone = [decide() for _ in range(n)]
    loop = perf_counter() - started
    kept = [len(result) for result in alone]
    del alone
    started = perf_counter()
    together = flt.batch([QUERY] * n, [scored] * n, metric="cosine")
    batch = perf_counter() - started
    assert [len(result) for result in together] == kept
    read = perf_counter() - started
    print(
        f"a loop {loop:.2f} s, batch {batch:.2f} s: {loop / batch:.2f} × (goal: 1.8 × on two cores); "
        f"with every result read {read:.2f} s: {loop / read:.2f} ×\n"
        f"one question: {deciding:.2f} ms to decide, {writing - deciding:.2f} ms to write its result, "
        f"{reading:.2f} ms to read it"
    )


if __name__ == "__main__":
    main()
