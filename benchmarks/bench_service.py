"""The service beside a plain /search on the same store: questions a second, p50 and p95, with many clients at once.
Exits with 1 if a request failed.

`python benchmarks/bench_service.py [WORKSPACE [COLLECTION]] [--clients 50] [--seconds 60]`

Both are one process of uvicorn over one open workspace, by turns in one run. The plain one embeds
the question and returns the 15 nearest chunks with their texts; the service filters with `full`
without reranking. A task in the event loop says for how long it was blocked at most.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import socket
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI

from ragfilter.ingest import bundled
from ragfilter.library.workspace import OpenWorkspace, open_workspace
from ragfilter.service.access import Caller
from ragfilter.service.routes import Serving, make_app
from ragfilter.settings.config import Given, of_profile

K = 15
FULL = of_profile("full", Given("here", {"quality.reranker": "none"}))


def plain(bench: OpenWorkspace, name: str) -> FastAPI:
    """An application that only searches, as one would write it."""
    app = FastAPI()
    collection, embedder = bench.collection(name), bench.recorded_embedder(name)

    @app.post("/search")
    def search(request: dict[str, str]) -> dict[str, Any]:
        pairs = collection.nearest(embedder.embed([request["question"]])[0], K)
        chunks = collection.chunks([i for i, _ in pairs])
        return {"hits": [{"id": i, "distance": d, "text": chunks[i].text} for i, d in pairs]}

    return app


class Blocked:
    """How long the event loop was blocked at most, in milliseconds."""

    def __init__(self) -> None:
        self.ms = 0.0

    async def watch(self) -> None:
        """Look every millisecond how much later it is."""
        while True:
            before = perf_counter()
            await asyncio.sleep(0.001)
            self.ms = max(self.ms, (perf_counter() - before) * 1000 - 1)


@contextmanager
def served(app: Any) -> Iterator[tuple[str, Blocked]]:
    """The address of a server in a thread, and its watch."""
    blocked = Blocked()
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))

    async def run() -> None:
        watching = asyncio.create_task(blocked.watch())
        await server.serve(sockets=[bound])
        watching.cancel()

    with socket.create_server(("127.0.0.1", 0), backlog=2048) as bound:
        thread = threading.Thread(target=lambda: asyncio.run(run()))
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}", blocked
        finally:
            server.should_exit = True
            thread.join()


async def load(url: str, path: str, clients: int, seconds: float) -> tuple[list[float], int]:
    """The seconds of each answer, and how many failed."""
    took: list[float] = []
    failed = 0
    questions = list(bundled.queries("demo").values())
    places = count()
    until = perf_counter() + seconds

    async def client(http: httpx2.AsyncClient) -> None:
        nonlocal failed
        while (started := perf_counter()) < until:
            question = questions[next(places) % len(questions)]
            response = await http.post(f"{url}{path}", json={"question": question})
            failed += not response.is_success
            took.append(perf_counter() - started)

    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(limits=limits, timeout=120) as http:
        tasks: list[Awaitable[None]] = [client(http) for _ in range(clients)]
        await asyncio.gather(*tasks)
    return took, failed


def measured(url: str, path: str, clients: int, seconds: float) -> tuple[list[float], int]:
    """`load` in a process of its own, so that it takes no turn from the server's threads."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(loaded, url, path, clients, seconds).result()


def loaded(url: str, path: str, clients: int, seconds: float) -> tuple[list[float], int]:
    """`load` in an event loop of its own."""
    return asyncio.run(load(url, path, clients, seconds))


def main() -> None:
    read = argparse.ArgumentParser()
    read.add_argument("workspace", nargs="?", default="workspace", type=Path)
    read.add_argument("collection", nargs="?", default="demo")
    read.add_argument("--clients", default=50, type=int)
    read.add_argument("--seconds", default=60.0, type=float)
    given = read.parse_args()
    # As the command line does; otherwise the server of MCP logs every line of everybody.
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "workspace"
        shutil.copytree(given.workspace, copy)
        with open_workspace(copy) as bench:
            name = given.collection
            serving = Serving(bench, name, FULL, {}, Caller(), timeout_s=120)
            makers: dict[str, Callable[[], Any]] = {
                "/search": lambda: plain(bench, name),
                "/v1/search": lambda: make_app(serving),
            }
            rates, lost = {}, 0
            for path, make in makers.items():
                with served(make()) as (url, blocked):
                    measured(url, path, 2, 1.0)
                    blocked.ms = 0.0
                    took, failed = measured(url, path, given.clients, given.seconds)
                    rates[path], lost = len(took) / given.seconds, lost + failed
                    p95 = quantiles(took, n=20)[-1] * 1000
                    print(
                        f"{path}: {rates[path]:.1f} a second, p50 {median(took) * 1000:.0f} ms, "
                        f"p95 {p95:.0f} ms, {failed} failed, "
                        f"event loop blocked {blocked.ms:.0f} ms at most"
                    )
            print(f"{rates['/search'] / rates['/v1/search']:.2f} × the plain search (goal: 2.5 ×)")
    if lost:
        sys.exit(f"{lost} requests failed")


if __name__ == "__main__":
    main()
