"""`Filter.batch` beside a loop over the same questions: seconds, and what it gains.

    PYTHONPATH=. python benchmarks/bench_batch.py [--questions 2000]

The hits are those of `bench_library.py`, in profile `full` without a model. The workers have
started before the time is taken. Also told, in processor time: to decide over the hits of one
question, to write its result for another process, and to read it, since results come back.
"""

from __future__ import annotations

import argparse
import gc
import pickle
from time import perf_counter

import ragfilter as rf
from benchmarks.bench_library import QUERY, hits, median_ms


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=2000)
    n = parser.parse_args().questions
    docs, distances = hits()
    scored = list(zip(docs, distances, strict=True))
    flt = rf.Filter("full")

    def decide() -> rf.Result:
        return flt(QUERY, scored, metric="cosine")

    result = decide()
    written = pickle.dumps(result)
    deciding, writing = median_ms(decide), median_ms(lambda: pickle.dumps(result))
    reading = median_ms(lambda: pickle.loads(written))
    flt.batch([QUERY] * 100, [scored] * 100, metric="cosine")
    gc.freeze()
    started = perf_counter()
    alone = [decide() for _ in range(n)]
    between = perf_counter()
    together = flt.batch([QUERY] * n, [scored] * n, metric="cosine")
    ended = perf_counter()
    assert [len(each) for each in together] == [len(each) for each in alone]
    print(
        f"a loop {between - started:.2f} s, batch {ended - between:.2f} s: "
        f"{(between - started) / (ended - between):.2f} × (goal: 1.8 × on two cores)\n"
        f"one question: {deciding:.2f} ms to decide, {writing:.2f} ms to write its result, "
        f"{reading:.2f} ms to read it; so at most "
        f"{2 * deciding / (deciding + writing + reading):.2f} × on two cores"
    )


if __name__ == "__main__":
    main()
