"""The filter over a large collection in PostgreSQL, beside a plain pgvector query. Ratios to that.

    PYTHONPATH=. python benchmarks/bench_postgres.py [--chunks 100000] [--address postgresql://…]
    PYTHONPATH=. python benchmarks/bench_postgres.py --chunks 1000000 --large

Chunks, rules, clearance and queries are those of `bench_scale.py`. The plain query orders by the same index and fetches
15 texts: `plain` with the server's own settings, with which it misses some, and `accurate` as widely as ragfilter
searches. Queries and profiles take turns, in wall-clock time, since the server is another process. `found` is the share
of the exact answer (every chunk compared) that came back. With `--large`, only `full` is asked, with short texts: told
are the seconds of indexing, p50 and p95 of a question, and the memory of this process while it asks. Without an
address, `pgserver` starts a server. The collection goes with the run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from subprocess import check_output
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.bench_scale import (
    DIMENSION,
    FULL,
    LATENT,
    QUERIES,
    QUESTION,
    USER,
    Given,
    K,
    best,
    made,
    nearest_clean,
    passing,
)
from benchmarks.clearance_roads import server
from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.model import Chunk, PoolResult
from ragfilter.protocols import Vectors
from ragfilter.settings.config import load
from ragfilter.settings.deployment import Deployment
from ragfilter.settings.schema import Settings
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.postgres import search, tables
from ragfilter.stores.postgres.store import PgStore

NAME = "scale"
PART = 50_000
PROFILES = {
    "adaptive_gap": load(profile="adaptive-gap", environ={}).settings,
    "query_must": load(profile="query-must", environ={}).settings,
    "full_no_rerank": load(profile="full", environ={}).settings.with_values(FULL),
}


def opened(address: str) -> PgStore:
    """The store with the catalogue's limit as a workspace has it."""
    PgStore._timeout_s = 600.0
    store = PgStore(address)
    store.catalogue_limit = Deployment.model_fields["catalogue_limit"].default
    return store


def asking(store: PgStore, settings: Settings) -> Callable[[Vectors], PoolResult]:
    """A function that asks the question with a query's vector."""
    collection = store.collection(NAME)

    def ask(query: Vectors) -> PoolResult:
        embedder = Given()
        embedder.vector = query
        return search_and_filter(QUESTION, settings, Backends(collection, embedder), USER)

    return ask


def plain(store: PgStore, width: int = 0) -> Callable[[Vectors], Any]:
    """A query as one would write it, with this width of its search of the index."""
    table = tables.chunks_of(store.look_up(NAME))
    query = (
        f"SELECT id, text, vector <-> %(query)s::vector AS d FROM {table} "
        f"ORDER BY vector <-> %(query)s::vector LIMIT {K}"
    )
    return lambda vector: store.read(query, {"query": tables.written(vector)}, width=width)


def timed(works: Mapping[str, Callable[[Vectors], Any]], queries: Vectors) -> dict[str, tuple[list[float], list[Any]]]:
    """The milliseconds of each work for each query, after a warm-up, and what came back."""
    n = len(queries)
    took: dict[str, list[float]] = {name: [0.0] * n for name in works}
    found: dict[str, list[Any]] = {name: [None] * n for name in works}
    for work in works.values():
        for query in queries[:5]:
            work(query)
    for turn in range(n):
        for place, (name, work) in enumerate(works.items()):
            at = (turn + place * n // len(works)) % n
            started = perf_counter()
            found[name][at] = work(queries[at])
            took[name][at] = (perf_counter() - started) * 1000
    return {name: (took[name], found[name]) for name in works}


def measure(address: str, n: int) -> dict[str, Any]:
    chunks, vectors, queries = made(n)
    store = opened(address)
    started = perf_counter()
    stored = [StoredRow(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
    store.put(NAME, stored, embedder=Given.name, content="benchmark")
    document: dict[str, Any] = {"chunks": n, "index_s": round(perf_counter() - started, 1)}
    with store.writing() as connection:
        connection.exec_driver_sql("ANALYZE")
    works = {name: asking(store, settings) for name, settings in PROFILES.items()}
    queries_alone = {"plain": plain(store), "accurate": plain(store, search.search_width(K, n, n))}
    times = timed(queries_alone | works, queries)
    share = {}
    nearest = [{chunks[i].id for i in np.argsort(-vectors @ query)[:K]} for query in queries]
    for name in queries_alone:
        took, results = times[name]
        document[f"{name}_ms"] = round(median(took), 2)
        hits = sum(len(wanted & {row[0] for row in found}) for wanted, found in zip(nearest, results, strict=True))
        share[name] = round(hits / (K * len(queries)), 4)
    for name, settings in PROFILES.items():
        took, results = times[name]
        allowed = passing(chunks, rules=name != "adaptive_gap", user=USER)
        document[name] = {of: round(median(took) / median(times[of][0]), 2) for of in queries_alone}
        found = [nearest_clean(result, settings) for result in results]
        wanted = [best(vectors, query, allowed, settings) for query in queries]
        hits = sum(len(set(a) & set(b)) for a, b in zip(found, wanted, strict=True))
        share[name] = round(hits / sum(map(len, wanted)), 4)
    store.close()
    return document | {"found": share}


def fill(address: str, n: int) -> float:
    """Index `n` chunks part by part, the vectors at the end. Returns the seconds."""
    store = opened(address)
    rng = np.random.default_rng(7)
    basis = rng.normal(size=(LATENT, DIMENSION)).astype(np.float32)
    patterns = made(1_000)[0]
    started = perf_counter()
    limits: Any = search
    few = limits.FEW
    for start in range(0, n, PART):
        size = min(PART, n - start)
        points = rng.normal(size=(size, LATENT)).astype(np.float32) @ basis
        points += 0.3 * rng.normal(size=points.shape).astype(np.float32)
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        part = [StoredRow(short(patterns, start + i), points[i]) for i in range(size)]
        # One index over all is made sooner than one that grows.
        limits.FEW = few if start + size >= n else n
        store.put(NAME, part, embedder=Given.name, content=f"{start}")
    store.close()
    return perf_counter() - started


def short(patterns: list[Chunk], number: int) -> Chunk:
    """A chunk as another one, with an id of its own and a short text."""
    pattern = patterns[number % len(patterns)]
    return replace(pattern, id=f"c{number}", text=f"Passage {number}.")


def ask_large(address: str) -> None:
    """Print the milliseconds of questions, and this process's memory, as JSON."""
    store = opened(address)
    basis = np.random.default_rng(7).normal(size=(LATENT, DIMENSION)).astype(np.float32)
    rng = np.random.default_rng(8)
    queries = rng.normal(size=(5 * QUERIES, LATENT)).astype(np.float32) @ basis
    queries += 0.3 * rng.normal(size=queries.shape).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    works = {"plain": plain(store), "full": asking(store, PROFILES["full_no_rerank"])}
    times = timed(works, queries)
    document: dict[str, Any] = {}
    for name, (took, _) in times.items():
        document[f"{name}_p50_ms"] = round(median(took), 1)
        document[f"{name}_p95_ms"] = round(quantiles(took, n=20)[-1], 1)
    # Not ru_maxrss, which begins with the memory of the process that started this one.
    status = Path("/proc/self/status").read_text("utf-8")
    document["memory_mb"] = int(status.partition("VmHWM:")[2].split()[0]) // 1024
    store.close()
    print(json.dumps(document))


def large(address: str, n: int) -> dict[str, Any]:
    """The figures of `n` chunks; questions are asked by a process that has not indexed them."""
    seconds = fill(address, n)
    output = check_output([sys.executable, __file__, "--asks", "--address", address], text=True)
    return {"chunks": n, "index_s": round(seconds, 1), **json.loads(output)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--address", default="")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--asks", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.asks:
        ask_large(given.address)
        return
    with server(given.address) as make:
        work = large if given.large else measure
        print(json.dumps(work(make(), given.chunks), indent=2))


if __name__ == "__main__":
    main()
