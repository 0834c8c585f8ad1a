"""How long a large API description takes, and how much memory: JSON of 30 MB and YAML of 12 MB.

Each is generated, written to a temporary folder and read in a process of its own, so that the
memory is its own. The descriptions hold cycles, chains of references and shared parts. Run:
PYTHONPATH=. python benchmarks/bench_openapi.py
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from ragfilter.ingest.openapi.read import load_openapi

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
        "paths": {
            f"/things/{i}/{{id}}": {"post": _operation(i, schemas)} for i in range(operations)
        },
        "components": {
            "schemas": {f"Schema{i}": _schema(i, schemas) for i in range(schemas)},
            "parameters": {
                "Id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
            },
            "responses": {
                "Failed": {
                    "description": "It failed.",
                    "content": {"application/json": {"schema": _ref(0)}},
                }
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
            *(
                {"name": f"filter{n}", "in": "query", "schema": {"type": "string", "maxLength": 80}}
                for n in range(6)
            ),
        ],
        "requestBody": {"content": {"application/json": {"schema": _ref(i % schemas)}}},
        "responses": {
            "200": {
                "description": "Done.",
                "content": {"application/json": {"schema": _ref((i * 7) % schemas)}},
            },
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
    records = list(load_openapi(path, source=path.name))
    seconds = time.perf_counter() - started
    refs = sum(len(record.chunk.refs) for record in records)
    size = path.stat().st_size / 1e6
    print(
        f"{path.name}: {size:.1f} MB, {len(records):,} chunks, {refs:,} references, "
        f"{seconds:.1f} s, {_peak_mb() - before:.0f} MB of memory at most",
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
