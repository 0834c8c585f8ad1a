"""Indexing in its own process, which is killed at a chosen point with no chance to clean up.

The embedder uses the bundled model's name, so that the command line and the page can query what it
made; its vectors need no model.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragfilter.ingest.records import Record, to_record
from ragfilter.protocols import Vectors

ROOT = Path(__file__).resolve().parents[1]
N = 60
PART = 20


class Even:
    """Equal texts have equal vectors."""

    name = "all-MiniLM-L6-v2"

    def embed(self, texts: Sequence[str]) -> Vectors:
        made = np.ones((len(texts), 384), dtype=np.float32)
        for n, text in enumerate(texts):
            made[n, sum(map(ord, text)) % 384] = 9.0
        return made / np.linalg.norm(made, axis=1, keepdims=True)


def records(n: int = N, *, text: str = "text", start: int = 0, **fields: Any) -> list[Record]:
    rule = {"query_must": {"contain": "text"}}
    return [
        to_record({"id": f"c{i}", "text": f"{text} {i}", **rule, **fields}, place="") for i in range(start, start + n)
    ]


CHILD = """
import sys
from killed import PART, Even, records
from ragfilter.stores import index as indexing
from ragfilter.stores.copies import Copies
from ragfilter.stores.chroma import ChromaCollection
from ragfilter.stores.chroma import ChromaStore
from ragfilter.stores.workspace import Workspace

folder, act, fields, point, when = sys.argv[1:]
owners = {
    "embed": Even, "change_clearances": Copies, "replace": Copies, "delete": ChromaStore,
    "recreate": ChromaStore, "withhold": ChromaCollection, "write": ChromaCollection,
}
indexing.EMBED_PART = indexing.WRITE_PART = PART
real = getattr(owners[point], point)

def stop():
    print("here", flush=True)
    sys.stdin.read()

def stopping(*args, **named):
    if when == "before":
        stop()
    made = real(*args, **named)
    stop()
    return made

with Workspace.open(folder) as workspace:
    setattr(owners[point], point, stopping)
    if act == "rebuild":
        indexing.rebuild("demo", workspace=workspace)
    else:
        indexing.index(
            records(**eval(fields)), name="demo", workspace=workspace, embedder=Even(),
            reset=act == "reset",
        )
"""


def killed(folder: Path, act: str, point: str, when: str = "after", **fields: Any) -> None:
    """Run `act` (index, reset, rebuild) on `records(**fields)` and kill it before or after its
    first call of `point`."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), act, repr(fields), point, when],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "PATH": "/usr/bin:/bin"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.kill()
    process.communicate()
