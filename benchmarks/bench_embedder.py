"""The bundled embedder beside sentence-transformers and plain onnxruntime with the same weights: the first 64 chunks
of the demo, idle and beside two busy processes.

    PYTHONPATH=. python benchmarks/bench_embedder.py [--json]
    PYTHONPATH=. python benchmarks/bench_embedder.py --rankings ../shared/data/cranfield

Each embedder has a process of its own, which loads the model before it is timed; all take turns, and the medians over
RUNS are told. `index` also stores the chunks, in an empty workspace each time. The `onnxruntime` ones have the same
graph in a session as onnxruntime makes it, and compute one batch after another; int8 is what `quantize_dynamic`
makes of it. Targets: at most 4 s of CPU time in both situations, and no more time by the clock than
sentence-transformers. With `--rankings`, told is how many questions of the demo and of a folder (corpus.jsonl and
queries.jsonl) have the same first 20 chunks, in the same order, as with sentence-transformers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from onnxruntime.quantization import quantize_dynamic
from safetensors.numpy import load_file

from benchmarks.load import busy
from ragfilter.basics.files import json_objects
from ragfilter.ingest import bundled
from ragfilter.ingest.records import Record, to_record
from ragfilter.models.embedders import GRAPH, BundledEmbedder, SentenceEmbedder, bundled_folder
from ragfilter.protocols import Embedder
from ragfilter.stores.indexer import index
from ragfilter.stores.workspace_files import Workspace

RUNS = 5
CPU_S = 4.0
FIRST = 20


class PlainSession:
    """A session as onnxruntime makes it, which computes one batch after another."""

    def __init__(self, model: bytes) -> None:
        self._session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        self._turn = threading.Lock()

    def run(self, names: None, inputs: dict[str, Any]) -> Any:
        with self._turn:
            return self._session.run(names, inputs)


class PlainEmbedder(BundledEmbedder):
    """The bundled model in such a session."""

    def __init__(self, *, int8: bool) -> None:
        super().__init__()
        self._int8 = int8

    def _load(self) -> tuple[Any, Any]:
        return PlainSession(complete(int8=self._int8)), super()._load()[1]


def complete(*, int8: bool) -> bytes:
    """The bundled model's graph with its weights."""
    model = onnx.load(str(GRAPH), load_external_data=False)
    weights = load_file(bundled_folder() / "model.safetensors")
    nodes, tensors = model.graph.node, model.graph.initializer
    for tensor in tensors:
        if tensor.external_data:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    given = {tensor.name: tensor for tensor in tensors}
    # Only tensors are quantized, not what a node makes of them.
    for node in [each for each in nodes if each.op_type == "Transpose" and each.input[0] in given]:
        turned = np.ascontiguousarray(numpy_helper.to_array(given[node.input[0]]).T)
        tensors.append(numpy_helper.from_array(turned, node.output[0]))
        tensors.remove(given[node.input[0]])
        nodes.remove(node)
    if not int8:
        return bytes(model.SerializeToString())
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "int8.onnx"
        # Closer to fp32 than its defaults.
        quantize_dynamic(model, made, per_channel=True, reduce_range=True)
        return made.read_bytes()


MAKERS: dict[str, Callable[[], Embedder]] = {
    "bundled": BundledEmbedder,
    "sentence-transformers": lambda: SentenceEmbedder(str(bundled_folder())),
    "onnxruntime fp32": lambda: PlainEmbedder(int8=False),
    "onnxruntime int8": lambda: PlainEmbedder(int8=True),
}
NAMES = (*MAKERS, "index")
"""The first one has to be as fast as the second one."""


def demo_records() -> list[Record]:
    return [to_record(row, place="demo") for row in islice(bundled.demo_rows(), 64)]


def serve(name: str) -> None:
    """Embed the texts for every line of standard input, and answer with seconds: by the clock, and of CPU time."""
    embedder = MAKERS.get(name, BundledEmbedder)()
    records = demo_records()
    texts = [record.chunk.text for record in records]
    embedder.embed(texts[:2])
    for _ in sys.stdin:
        with tempfile.TemporaryDirectory() as folder, Workspace.open(Path(folder)) as workspace:
            clock, cpu = time.perf_counter(), time.process_time()
            if name == "index":
                index(records, name="demo", workspace=workspace, embedder=embedder)
            else:
                embedder.embed(texts)
            print(time.perf_counter() - clock, time.process_time() - cpu, flush=True)


def timed(worker: subprocess.Popen[str]) -> list[float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    print(file=worker.stdin, flush=True)
    return [float(seconds) for seconds in worker.stdout.readline().split()]


def measured(workers: dict[str, subprocess.Popen[str]], tokens: int) -> dict[str, dict[str, float]]:
    """The medians of each embedder, which take turns."""
    rounds = [{name: timed(worker) for name, worker in workers.items()} for _ in range(RUNS)]
    clocks = {name: median(each[name][0] for each in rounds) for name in workers}
    return {
        name: {
            "clock_s": round(clock, 2),
            "cpu_s": round(median(each[name][1] for each in rounds), 2),
            "tokens_per_s": round(tokens / clock),
        }
        for name, clock in clocks.items()
    }


def rankings(folder: Path) -> None:
    """Print how many questions keep their first chunks with each embedder."""
    rows = {name: [row for _, row in json_objects(folder / f"{name}.jsonl", "")] for name in ("corpus", "queries")}
    cranfield = [to_record(row, place=folder.name).chunk.passage for row in rows["corpus"] if row["text"].strip()]
    sets = {
        "demo": ([record.chunk.passage for record in bundled.records("demo")], [*bundled.queries("demo").values()]),
        folder.name: (cranfield, [str(row["text"]) for row in rows["queries"]]),
    }
    for name, (passages, questions) in sets.items():
        first = {}
        for maker, make in MAKERS.items():
            embedder = make()
            vectors = embedder.embed(passages)
            asked = (embedder.embed([question])[0] for question in questions)
            first[maker] = [tuple(np.argsort(-(vectors @ each), kind="stable")[:FIRST]) for each in asked]
        for maker in MAKERS:
            pairs = list(zip(first[maker], first["sentence-transformers"], strict=True))
            same = sum(mine == theirs for mine, theirs in pairs)
            chunks = sum(set(mine) == set(theirs) for mine, theirs in pairs)
            print(f"{name}, {maker}: {same} of {len(pairs)} in the same order, {chunks} with the same chunks")


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
    _, tokenizer = BundledEmbedder().model()
    tokens = sum(len(tokenizer.encode(record.chunk.text).ids) for record in demo_records())
    try:
        for worker in workers.values():
            timed(worker)
        times = {"idle": measured(workers, tokens)}
        with busy(2):
            times["beside two busy processes"] = measured(workers, tokens)
    finally:
        for worker in workers.values():
            worker.kill()
            worker.wait()
    if "--json" in arguments:
        print(json.dumps(times, indent=2))
        return
    for situation, rows in times.items():
        ours, theirs = rows["bundled"], rows["sentence-transformers"]
        print(
            f"{situation}: {ours['clock_s'] / theirs['clock_s']:.2f} × the time of sentence-transformers (target 1), "
            f"{ours['cpu_s']} s of CPU time (target {CPU_S:g} s)"
        )
        for name, row in rows.items():
            print(f"  {name}: {row['clock_s']} s, {row['cpu_s']} s of CPU time, {row['tokens_per_s']} tokens a second")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    elif sys.argv[1:2] == ["--rankings"]:
        rankings(Path(sys.argv[2]))
    else:
        main(sys.argv[1:])
