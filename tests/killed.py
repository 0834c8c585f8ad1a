"""Indexing in its own process, which is killed at a chosen point with no chance to clean up.

The embedder uses the bundled model's name, so that the command line and the page can query what it
made; its vectors need no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving import SERVERS

from ragfilter.ingest.records import Record, to_record
from ragfilter.protocols import Vectors
from ragfilter.stores import indexer as indexing
from ragfilter.stores.chroma import ChromaCollection
from ragfilter.stores.copies import Copies
from ragfilter.stores.workspace_files import Workspace

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


def act_until(folder: Path, act: str, fields: dict[str, Any], point: str, when: str, reached: Connection) -> None:
    """Run `act`, and stop before or after its first call of `point`, at which `reached` gets a message."""
    owners: dict[str, Any] = {"embed": Even, "replace": Copies, "withhold": ChromaCollection, "write": ChromaCollection}
    real = getattr(owners[point], point)

    def stop() -> None:
        reached.send("here")
        reached.recv()

    def stopping(*args: Any, **named: Any) -> Any:
        if when == "before":
            stop()
        result = real(*args, **named)
        stop()
        return result

    with Workspace.open(folder) as workspace, pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "EMBED_PART", PART)
        patch.setattr(indexing, "WRITE_PART", PART)
        patch.setattr(owners[point], point, stopping)
        if act == "rebuild":
            indexing.rebuild("demo", workspace=workspace)
        else:
            rows = records(**fields)
            indexing.index(rows, name="demo", workspace=workspace, embedder=Even(), reset=act == "reset")


def killed(folder: Path, act: str, point: str, when: str = "after", **fields: Any) -> None:
    """Run `act` (index, reset, rebuild) on `records(**fields)` and kill it before or after its
    first call of `point`."""
    here, there = SERVERS.Pipe()
    process = SERVERS.Process(target=act_until, args=(folder, act, fields, point, when, there))
    process.start()
    there.close()
    assert here.recv() == "here"
    process.kill()
    process.join()
    here.close()
