"""The bundled embedder against sentence-transformers with the same weights: the first 64 chunks of
the demo, idle and beside two busy processes.

Each embedder has a process of its own, which loads the model before it is timed; the two take turns, and the medians
over RUNS are told. With `--json`, as JSON. Targets: at most 4 s of CPU time in both situations, and no more time by the
clock than sentence-transformers: `PYTHONPATH=. python benchmarks/bench_embedder.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from statistics import median

from benchmarks.load import busy
from ragfilter.ingest import bundled
from ragfilter.models.embedders import BundledEmbedder, SentenceEmbedder, bundled_folder
from ragfilter.protocols import Embedder

RUNS = 5
CPU_S = 4.0
NAMES = ("bundled", "sentence-transformers")
"""The first one has to be as fast as the second one."""


def serve(name: str) -> None:
    """Embed the texts for every line of standard input, and answer with seconds: by the clock, and of CPU time."""
    embedder: Embedder = BundledEmbedder() if name == NAMES[0] else SentenceEmbedder(str(bundled_folder()))
    texts = [str(record["text"]) for record in islice(bundled.demo_rows(), 64)]
    embedder.embed(texts[:2])
    for _ in sys.stdin:
        clock, cpu = time.perf_counter(), time.process_time()
        embedder.embed(texts)
        print(time.perf_counter() - clock, time.process_time() - cpu, flush=True)


def timed(worker: subprocess.Popen[str]) -> list[float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    print(file=worker.stdin, flush=True)
    return [float(seconds) for seconds in worker.stdout.readline().split()]


def measured(workers: dict[str, subprocess.Popen[str]]) -> dict[str, dict[str, float]]:
    """The medians of each embedder, which take turns."""
    rounds = [{name: timed(worker) for name, worker in workers.items()} for _ in range(RUNS)]
    return {
        name: {
            "clock_s": round(median(each[name][0] for each in rounds), 2),
            "cpu_s": round(median(each[name][1] for each in rounds), 2),
        }
        for name in workers
    }


def main(arguments: Sequence[str]) -> None:
    workers = {
        name: subprocess.Popen(
            [sys.executable, "-m", "benchmarks.bench_embedder", "--serve", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in NAMES
    }
    try:
        for worker in workers.values():
            timed(worker)
        times = {"idle": measured(workers)}
        with busy(2):
            times["beside two busy processes"] = measured(workers)
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()
    if "--json" in arguments:
        print(json.dumps(times, indent=2))
        return
    for situation, rows in times.items():
        ours, theirs = (rows[name] for name in NAMES)
        ratio = ours["clock_s"] / theirs["clock_s"]
        print(
            f"{situation}: bundled {ours['clock_s']} s, {ours['cpu_s']} s of CPU time (target "
            f"{CPU_S:g} s); sentence-transformers {theirs['clock_s']} s and {theirs['cpu_s']} s; "
            f"ratio by the clock {ratio:.2f} (target 1)"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main(sys.argv[1:])
