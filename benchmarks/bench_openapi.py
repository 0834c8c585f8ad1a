"""How long a large API description takes, and how much memory: JSON of 30 MB and YAML of 12 MB.

Each is generated, written to a temporary folder and read in a process of its own, so that the memory is its own. The
descriptions hold cycles, chains of references and shared parts. Run: PYTHONPATH=. python benchmarks/bench_openapi.py
With `--index [OPERATIONS]` a description of so many operations (1,000; 13 MB) is cut, embedded, indexed and queried
instead.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from ragfilter.engine.pipeline import search_and_filter
from ragfilter.indexing.order import Order, carry_out
from ragfilter.ingest.openapi.read import load_openapi
from ragfilter.ingest.records import PLAIN
from ragfilter.library.workspace import open_workspace
from ragfilter.settings.config import load

WORDS = [
    "account",
    "order",
    "item",
    "price",
    "state",
    "owner",
    "region",
    "limit",
    "window",
    "budget",
    "report",
    "event",
]


def description(schemas: int, operations: int) -> dict[str, Any]:
    """An OpenAPI description with that many schemas and operations."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Large API", "version": "1", "description": "# Start\n\nRead on."},
        "paths": {f"/things/{i}/{{id}}": {"post": _operation(i, schemas)} for i in range(operations)},
        "components": {
            "schemas": {f"Schema{i}": _schema(i, schemas) for i in range(schemas)},
            "parameters": {"Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}},
            "responses": {
                "Failed": {"description": "It failed.", "content": {"application/json": {"schema": _ref(0)}}}
            },
        },
    }


def _operation(i: int, schemas: int) -> dict[str, Any]:
    return {
        "operationId": f"doThing{i}",
        "summary": f"Do thing {i}",
        "description": " ".join(WORDS[(i + n) % len(WORDS)] for n in range(40)),
        "parameters": [
            {"$ref": "#/components/parameters/Id"},
            *({"name": f"filter{n}", "in": "query", "schema": {"type": "string", "maxLength": 80}} for n in range(6)),
        ],
        "requestBody": {"content": {"application/json": {"schema": _ref(i % schemas)}}},
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": _ref((i * 7) % schemas)}}},
            "400": {"$ref": "#/components/responses/Failed"},
        },
    }


def _schema(i: int, schemas: int) -> dict[str, Any]:
    properties: dict[str, Any] = {
        f"{word}{i % 10}": {
            "type": "string",
            "description": f"The {word} of schema {i}, as {WORDS[(i + 3) % len(WORDS)]} has it.",
            "example": f"{word}-{i}",
        }
        for word in WORDS
    }
    # The next one, one far away (cycles arise), and itself.
    properties |= {"next": _ref((i + 1) % schemas), "self": _ref(i)}
    properties["far"] = {"type": "array", "items": _ref((i * 31 + 7) % schemas)}
    return {"type": "object", "required": [f"{WORDS[0]}{i % 10}"], "properties": properties}


def _ref(i: int) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/Schema{i}"}


def measure(path: Path) -> None:
    """Print what reading `path` in this process took."""
    before = _peak_mb()
    started = time.perf_counter()
    records, _ = load_openapi(path.parent, [path.name], PLAIN)
    seconds = time.perf_counter() - started
    refs = sum(len(record.chunk.refs) for record in records)
    size = path.stat().st_size / 1e6
    print(
        f"{path.name}: {size:.1f} MB, {len(records):,} chunks, {refs:,} references, "
        f"{seconds:.1f} s, {_peak_mb() - before:.0f} MB of memory at most",
        flush=True,
    )


def index(path: Path) -> None:
    """Print what it took to cut, embed and index `path`, then to filter a question."""
    with tempfile.TemporaryDirectory() as folder, open_workspace(folder) as bench:
        bench.embedder.embed(["a text"])  # The model is loaded once a process.
        started, work = time.perf_counter(), time.process_time()
        n = carry_out(Order("large", str(path)), bench).report.total
        seconds, work = time.perf_counter() - started, time.process_time() - work
        print(
            f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {n:,} chunks indexed in "
            f"{seconds:.0f} s ({1000 * seconds / n:.1f} ms a chunk; {work:.0f} s of processor "
            f"time, {1000 * work / n:.1f} ms a chunk), {_peak_mb():.0f} MB of memory at most",
            flush=True,
        )
        settings = load(profile="full", environ={}).settings
        times, works = [], []
        for i in range(11):
            started, work = time.perf_counter(), time.process_time()
            result = search_and_filter(f"How do I do thing {i * 7}?", settings, bench.backends("large"))
            times.append(1000 * (time.perf_counter() - started))
            works.append(1000 * (time.process_time() - work))
        print(
            f"{len(result.hits)} hits filtered with full: first question {times[0]:.0f} ms, then "
            f"{median(times[1:]):.0f} ms ({median(works[1:]):.0f} ms of processor time)",
            flush=True,
        )


def _peak_mb() -> float:
    # `ru_maxrss` of a new process begins with that of its parent, so ask the kernel itself.
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    if sys.argv[1:2] == ["--index"]:
        operations = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "large.json")
            text = json.dumps(description(21 * operations // 4, operations), indent=1)
            path.write_text(text, encoding="utf-8")
            index(path)
        return
    if len(sys.argv) > 1:
        measure(Path(sys.argv[1]))
        return
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder, "large.json")
        large.write_text(json.dumps(description(11_000, 5_000), indent=1), encoding="utf-8")
        written = Path(folder, "large.yaml")
        tree = json.loads(json.dumps(description(5_500, 2_500)))
        written.write_text(yaml.dump(tree, Dumper=dumper), encoding="utf-8")
        for path in (large, written):
            subprocess.run([sys.executable, __file__, str(path)], check=True)


if __name__ == "__main__":
    main()
