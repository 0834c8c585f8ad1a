"""The filter over a large collection, beside a plain search of the same store. Ratios to that.

Chroma, numpy and the seed's literal `$nin` loop answer the same queries in the same run: 384
dimensions, half of the chunks with one of 1,500 distinct rules, a quarter above the user's
clearance. The vectors lie near a space of 24 dimensions, as those of real texts do.

Times are of the processor, Chroma's included. Plain search and profiles take turns, each at another
query, so that neither a busy moment nor what is left in the processor's caches favours one of them.

    PYTHONPATH=. python benchmarks/bench_scale.py [--chunks 100000] [--folder DIR] [--json]

`--folder` keeps the collection for another run. `first_query_s` is from opening the store to the answer in a new
process, and `process_s` all that this process takes, imports included. `found` is the share of the exact answer (every
chunk compared) that came back, over all queries; `short` counts queries with fewer than k.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.model import Chunk, PoolResult, User
from ragfilter.protocols import Progress, Vectors
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings
from ragfilter.stores.chroma import ChromaCollection, ChromaStore
from ragfilter.stores.copies import StoredRow

DIMENSION, LATENT = 384, 24
RULES = 1_500
K = 15
QUERIES = 40
QUESTION = "What does a cleric of level 7 need to hit armor class 3?"
USER = User(level=1)
FULL = {"quality.reranker": "none", "quality.background_share": 1.0}
"""Profile full, but for the reranker; every match is good, so that all k go on to the cutoff."""


class Given:
    """An embedder whose next vector is set, so that no model's time is measured."""

    name = "given"
    vector: Vectors

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        return np.stack([self.vector] * len(texts))


def made(n: int) -> tuple[list[Chunk], Vectors, Vectors]:
    """Chunks, their vectors, and the queries' vectors; the same ones every time."""
    rng = np.random.default_rng(7)
    basis = rng.normal(size=(LATENT, DIMENSION)).astype(np.float32)
    points = rng.normal(size=(n + QUERIES, LATENT)).astype(np.float32) @ basis
    points += 0.3 * rng.normal(size=points.shape).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    rules = [
        json.dumps({"contain_one_of": [[f"class {i % 50}", f"ac {i % 50}"], [f"level {i // 50}"]]})
        for i in range(RULES)
    ]
    chunks = [
        Chunk(
            f"c{i}",
            f"Passage {i}. " + "Words that fill a passage of some length. " * 10,
            f"Title {i}",
            source=f"file-{i % 40}.md",
            clearance=(0, 0, 1, 2)[i % 4],
            rule=rules[i // 2 % RULES] if i % 2 else None,
        )
        for i in range(n)
    ]
    return chunks, points[:n], points[n:]


def collection(folder: Path, chunks: Sequence[Chunk], vectors: Vectors) -> ChromaStore:
    store = ChromaStore.folder(folder / "chroma")
    if "scale" not in {info.name for info in store.collections()}:
        filled = store.create("scale", embedder="given")
        for start in range(0, len(chunks), 5_000):
            part = range(start, min(start + 5_000, len(chunks)))
            filled.write([StoredRow(chunks[i], vectors[i]) for i in part])
        filled.set_content("benchmark")
    return store


Work = Callable[[Vectors], Any]


def timed(works: Mapping[str, Work], queries: Vectors) -> dict[str, tuple[float, list[Any]]]:
    """Median milliseconds of processor time, after a warm-up, and what came back for each query."""
    n = len(queries)
    apart = n // len(works)
    took = {name: np.zeros(n) for name in works}
    found: dict[str, list[Any]] = {name: [None] * n for name in works}
    for work in works.values():
        work(queries[0])
    for turn in range(n):
        for place, (name, work) in enumerate(works.items()):
            at = (turn + place * apart) % n
            started = time.process_time()
            found[name][at] = work(queries[at])
            took[name][at] = (time.process_time() - started) * 1000
    return {name: (float(np.median(took[name])), found[name]) for name in works}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--first-query", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first_query:
        print(*first_query(options.folder))
        return
    with tempfile.TemporaryDirectory() as spare:
        document = measure(options.folder or Path(spare), options.chunks)
    if options.json:
        print(json.dumps(document, indent=2))
        return
    for name, value in document.items():
        print(f"{name}: {value}")


def measure(folder: Path, n: int) -> dict[str, Any]:
    chunks, vectors, queries = made(n)
    store = collection(folder, chunks, vectors)
    there = store.collection("scale")
    raw: Any = store.client.get_collection("scale", embedding_function=None)
    profiles = {
        "adaptive_gap": load(profile="adaptive-gap", environ={}).settings,
        "query_must": load(profile="query-must", environ={}).settings,
        "full_no_rerank": load(profile="full", environ={}).settings.with_values(FULL),
    }

    def plain(query: Vectors) -> list[str]:
        found = raw.query(query_embeddings=[query], n_results=K)
        return list(found["ids"][0])

    def filtered(settings: Settings) -> Callable[[Vectors], PoolResult]:
        def search(query: Vectors) -> PoolResult:
            return ask(settings, there, query)

        return search

    failing = [i for i, holds in enumerate(passing(chunks, rules=True)) if not holds]

    def nin_loop(query: Vectors) -> list[str]:
        kept: list[str] = []
        seen: list[str] = []
        for _ in range(3):
            where = {"title": {"$nin": [f"Title {i[1:]}" for i in seen]}} if seen else None
            found = raw.query(query_embeddings=[query], n_results=K, where=where)["ids"][0]
            kept += [i for i in found if int(i[1:]) not in barred]
            seen += found
            if len(kept) >= K or all(int(i[1:]) not in barred for i in found):
                break
        return kept[:K]

    barred = set(failing)

    def exact(query: Vectors) -> list[str]:
        distances = 2.0 - 2.0 * (vectors @ query)
        return [f"c{i}" for i in np.argsort(distances, kind="stable")[:K]]

    # What reads the collection for the first time keeps what it has read for the next opening.
    filtered(profiles["full_no_rerank"])(queries[0])
    command = [sys.executable, __file__, "--first-query", "--folder", str(folder)]
    firsts = [subprocess.check_output(command, text=True).split() for _ in range(5)]
    first_s, process_s = (float(np.median([float(run[i]) for run in firsts])) for i in (0, 1))
    searches = {name: filtered(settings) for name, settings in profiles.items()}
    times = timed({"plain": plain, **searches}, queries)
    plain_ms, _ = times["plain"]
    document: dict[str, Any] = {"chunks": n, "plain_ms": round(plain_ms, 3)}
    allowed = {
        "adaptive_gap": passing(chunks, rules=False, user=USER),
        "query_must": passing(chunks, rules=True, user=USER),
        "full_no_rerank": passing(chunks, rules=True, user=USER),
    }
    share: dict[str, float] = {}
    short: dict[str, int] = {}
    for name, settings in profiles.items():
        ms, results = times[name]
        document[name] = round(ms / plain_ms, 2)
        found = [nearest_clean(result, settings) for result in results]
        wanted = [best(vectors, query, allowed[name], settings) for query in queries]
        hits = sum(len(set(a) & set(b)) for a, b in zip(found, wanted, strict=True))
        share[name] = round(hits / sum(map(len, wanted)), 4)
        short[name] = sum(len(a) < len(b) for a, b in zip(found, wanted, strict=True))
    loop_ms, loops = timed({"nin_loop": nin_loop}, queries[:10])["nin_loop"]
    document["nin_loop"] = round(loop_ms / plain_ms, 2)
    numpy_ms, _ = timed({"numpy": exact}, queries)["numpy"]
    document["numpy"] = round(numpy_ms / plain_ms, 2)
    short["nin_loop"] = sum(len(found) < K for found in loops)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    store.close()
    return document | {
        "found": share,
        "short": short,
        "first_query_s": round(first_s, 2),
        "process_s": round(process_s, 2),
        "peak_memory_mb": round(peak),
    }


def first_query(folder: Path) -> tuple[float, float]:
    """Seconds of processor time: from opening the store to the answer, and since the start."""
    rng = np.random.default_rng(7)
    query = rng.normal(size=DIMENSION).astype(np.float32)
    settings = load(profile="full", environ={}).settings.with_values(FULL)
    started = time.process_time()
    store = ChromaStore.folder(folder / "chroma")
    ask(settings, store.collection("scale"), query)
    answered = time.process_time()
    store.close()
    return answered - started, answered


def ask(settings: Settings, collection: ChromaCollection, query: Vectors) -> PoolResult:
    embedder = Given()
    embedder.vector = query
    return search_and_filter(QUESTION, settings, Backends(collection, embedder), USER)


def passing(chunks: Sequence[Chunk], *, rules: bool, user: User | None = None) -> Any:
    """Which chunks may stay, every one of them asked."""
    scan = compiled_rules(tuple(dict.fromkeys(c.rule for c in chunks if c.rule))).scan(QUESTION)
    return np.array([(not rules or scan.passes(chunk.rule)) and (user is None or user.sees(chunk)) for chunk in chunks])


def best(vectors: Vectors, query: Vectors, allowed: Any, settings: Settings) -> list[str]:
    """The exact nearest among those allowed, as many as the settings look at."""
    places = np.flatnonzero(allowed)
    distances = 2.0 - 2.0 * (vectors[places] @ query)
    order = np.argsort(distances, kind="stable")[: settings.retrieval.k]
    return [f"c{places[i]}" for i in order]


def nearest_clean(result: PoolResult, settings: Settings) -> list[str]:
    """What came through clearance and rules, the nearest k."""
    dropped = {
        decision.chunk_id
        for trace in result.traces
        if trace.layer in ("clearance", "query_must")
        for decision in trace.decisions
        if decision.outcome == "dropped"
    }
    clean = [hit.id for hit in result.hits if hit.id not in dropped]
    return clean[: settings.retrieval.k]


if __name__ == "__main__":
    main()
