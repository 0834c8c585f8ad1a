"""kill -9 at random moments during indexing, many times.

After every kill the workspace is opened again, and then: the collection is wholly as it was or wholly as it is to be,
or it says that it is incomplete; a rule that was edited before stays; and the same indexing goes on, embeds again at
most one part, and completes it. No model is loaded. Run: PYTHONPATH=. python benchmarks/kill_indexing.py [TIMES
[ADDRESS]], 50 by default, in a new folder or in an empty database at an address (``postgresql://…``).
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ragfilter.ingest.records import Record
from ragfilter.model import Chunk
from ragfilter.protocols import Vectors
from ragfilter.settings.deployment import read_deployment
from ragfilter.stores import indexer as indexing
from ragfilter.stores.indexer import EMBED_PART, index
from ragfilter.workbench import open_files_and_store

N = 500
NAME = "kill"
RULE = '{"contain":"kept"}'


class Slow:
    """Equal vectors, a part at a time, with time to be killed in between."""

    name = "slow"

    def __init__(self) -> None:
        self.embedded = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        time.sleep(0.03)
        self.embedded += len(texts)
        return np.tile(np.eye(1, 8, dtype=np.float32), (len(texts), 1))


def work(place: str, version: int, *, tells: bool = False) -> int:
    """Index the version of the records. Returns how many texts were embedded."""
    indexing.WRITE_PART = 100
    records = [Record(Chunk(f"c{i}", f"version {version} of {i}"), "a line") for i in range(N)]
    embedder = Slow()
    with open_files_and_store(read_deployment(data_dir=place), "index") as workspace:
        if tells:
            print("begun", flush=True)
        index(records, name=NAME, workspace=workspace, embedder=embedder, rules=lambda: {"c0": RULE})
    return embedder.embedded


def state(place: str, version: int) -> str:
    """What a kill left: the old version, the new one, or a collection that says what it lacks."""
    with open_files_and_store(read_deployment(data_dir=place), "query") as workspace:
        collection = workspace.store().collection(NAME)
        if collection.incomplete:
            return "incomplete"
        chunks = collection.chunks([f"c{i}" for i in range(N)])
        versions = {chunk.text.split()[1] for chunk in chunks.values()}
        assert len(chunks) == N, "a chunk is lost"
        assert versions in ({str(version)}, {str(version - 1)}), "half of a version is told whole"
        assert chunks["c0"].rule == RULE, "an edited rule is lost"
        return "new" if versions == {str(version)} else "old"


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    rng = random.Random(1)
    states: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = sys.argv[2] if len(sys.argv) > 2 else f"{folder}/ws"
        started = time.monotonic()
        work(place, 0)
        takes = time.monotonic() - started
        for version in range(1, times + 1):
            command = [sys.executable, __file__, "--work", place, str(version)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                child.stdout.readline()
                time.sleep(rng.uniform(0, takes))
                child.kill()
            state_found = state(place, version)
            states[state_found] += 1
            started = time.monotonic()
            done = (work(place, version) - 1) // EMBED_PART
            takes = max(takes, time.monotonic() - started)
            assert state_found == "old" or done <= 0, "what was embedded is embedded again"
            assert state(place, version) == "new", "the same indexing does not complete it"
    print(f"{times} kills: {dict(states)}; none half told, each completed by the same indexing")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), tells=True)
    else:
        main()
