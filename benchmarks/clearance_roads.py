"""Clearance over every road out of a workspace in PostgreSQL: cases and leaks.

    PYTHONPATH=. python benchmarks/clearance_roads.py [--cases 10000] [--address postgresql://…]

A case is one question over one road: as a generated user, over generated chunks with levels, departments, references,
rules and damaged metadata. What comes back must name no chunk that `User.refusal` refuses to that user, by id, title,
text or file. The roads are the SQL of both kinds of tables, HTTP, MCP, spans of traces, metrics, errors, and counts.
Without an address, `pgserver` starts a server. At the end, the time of a question is told beside that over a twin
without the hidden chunks; they take turns.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count, cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, cast
from zlib import crc32

import numpy as np
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from ragfilter.library import result as results
from ragfilter.library import tracing
from ragfilter.library.workspace import OpenWorkspace
from ragfilter.model import Chunk, User
from ragfilter.protocols import Vectors, Where
from ragfilter.service.access import Caller, token_hash
from ragfilter.service.routes import Serving, make_app
from ragfilter.settings.config import Given, of_profile
from ragfilter.settings.deployment import Deployment
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.postgres import tables
from ragfilter.stores.postgres.foreign import TableStore
from ragfilter.stores.postgres.store import PgStore
from ragfilter.workbench import overview

CHUNKS = 120
DIMENSION = 16
LEVELS = (0, 0, 1, 2, 3, None)
DEPARTMENTS = (None, None, "ops", "hr")
USERS = [User(level, names) for level in (0, 1, 2, 3) for names in ((), ("ops",), ("hr", "ops"))]
PROFILES = ("full", "query-must", "adaptive-gap", "unfiltered")
QUESTIONS = ("What does the cleric need?", "cleric vs wizard", "Is word7 or word9 open?", "word3")
DAMAGE = ("clearance = NULL", "clearance = -1", "department = NULL")
SETTINGS = of_profile("full", Given("here", {"quality.reranker": "none"}))


class Hashed:
    """Unit vectors drawn by the hash of a text, so that no model is needed."""

    name = "hashed"

    def embed(self, texts: Sequence[str]) -> Vectors:
        drawn = [np.random.default_rng(crc32(t.encode())).normal(size=DIMENSION) for t in texts]
        vectors = np.array(drawn, dtype=np.float32).reshape(len(texts), DIMENSION)
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def prepare(self) -> None:
        """Nothing has to be loaded."""


def names_of(number: int) -> tuple[str, str, str, str]:
    """The id, and a word of title, text and file that no other chunk has."""
    return f"id{number:03d}z", f"title{number:03d}z", f"text{number:03d}z", f"file{number:03d}z"


def chunks(rng: random.Random, n: int = CHUNKS) -> list[Chunk]:
    """Chunks that refer to each other, whatever their clearance."""
    listed = []
    for number in range(n):
        chunk_id, title, text, file = names_of(number)
        listed.append(
            Chunk(
                chunk_id,
                f"{text} says what a cleric needs, word{number % 11}.",
                f"{title} wizard",
                source=f"{file}.md",
                refs=tuple(names_of(rng.randrange(n))[0] for _ in range(3)),
                clearance=rng.choice(LEVELS),
                department=rng.choice(DEPARTMENTS),
                rule=rng.choice((None, '{"contain": "cleric"}', '{"contain": "x"}', "broken")),
            )
        )
    return listed


@dataclass(frozen=True, slots=True)
class Roads:
    """A served workspace in PostgreSQL, whose `chunks` are known as they are stored."""

    bench: OpenWorkspace
    chunks: Sequence[Chunk]
    table: TableStore
    client: TestClient
    spans: InMemorySpanExporter

    def hidden(self, user: User) -> list[str]:
        """The names of the chunks that the user may not see."""
        return [name for number, chunk in enumerate(self.chunks) if user.refusal(chunk) for name in names_of(number)]

    def asked(self, path: str, user: User, body: Any) -> str:
        token = {"Authorization": f"Bearer {token_of(user)}", "Accept": "application/json"}
        return self.client.post(path, json=body, headers=token).text

    def sql(self, user: User, question: str, profile: str) -> str:
        """The store's own conditions: vectors, words, and ids that may be hidden."""
        stored = self.bench.collection("roads")
        vector, where = Hashed().embed([question])[0], Where(user)
        every = [chunk.id for chunk in self.chunks]
        found = [
            *stored.nearest(vector, CHUNKS, where=where),
            *stored.nearest(vector, 5, ids=every, where=where),
            *cast(Any, stored).matching(question, CHUNKS, where=where),
            *self.table.collection("theirs").nearest(vector, CHUNKS, where=where),
        ]
        return repr(found)

    def search(self, user: User, question: str, profile: str) -> str:
        return self.asked("/v1/search", user, {"question": question, "profile": profile})

    def filter(self, user: User, question: str, profile: str) -> str:
        body = {"question": question, "profile": profile, "hits": self._hits(), "metric": "similarity"}
        return self.asked("/v1/filter", user, body)

    def rerank(self, user: User, question: str, profile: str) -> str:
        body = {"query": question, "model": profile, "documents": self._hits(), "return_documents": True}
        return self.asked("/v1/rerank", user, body)

    def _hits(self) -> list[dict[str, Any]]:
        return [
            {
                "id": c.id,
                "text": c.text,
                "title": c.title,
                "refs": list(c.refs),
                "score": 0.5,
                "clearance": "damaged" if c.clearance is None else c.clearance,
                "department": c.department,
            }
            for c in self.chunks
        ]

    def dify(self, user: User, question: str, profile: str) -> str:
        setting = {"top_k": 50, "score_threshold": 0.0}
        body = {"knowledge_id": "roads", "query": question, "retrieval_setting": setting}
        return self.asked("/retrieval", user, body)

    def mcp(self, user: User, question: str, profile: str) -> str:
        calls: list[tuple[str, dict[str, Any]]] = [
            ("search_chunks", {"query": question, "profile": profile, "k": 50}),
            ("get_chunks", {"ids": [c.id for c in self.chunks if not user.refusal(c)], "depth": 3}),
        ]
        return "".join(
            self.asked(
                "/mcp",
                user,
                {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}},
            )
            for name, given in calls
        )

    def traces(self, user: User, question: str, profile: str) -> str:
        self.spans.clear()
        self.search(user, question, profile)
        return "".join(span.to_json() for span in self.spans.get_finished_spans())

    def metrics(self, user: User, question: str, profile: str) -> str:
        """Its text, and that it counts what the answer tells and nothing more."""
        before = self._counted(user)
        answer = json.loads(self.search(user, question, profile))
        counts = Counter({"kept": len(answer["kept"])})
        counts.update(f"dropped {row['layer']}" for row in answer["dropped"])
        assert self._counted(user) - before == +counts, "counts of hidden chunks"
        return self._metrics(user)

    def errors(self, user: User, question: str, profile: str) -> str:
        """Files that may be hidden, a collection that is not there, a setting that is none."""
        bodies: list[dict[str, Any]] = [
            {"settings": {"retrieval.source_pattern": "nothing*"}},
            {"settings": {"cutoff.max_results": -1}},
            {"collection": "nope"},
        ]
        return "".join(self.asked("/v1/search", user, {"question": question, **body}) for body in bodies)

    def counts(self, user: User, question: str, profile: str) -> str:
        """The figures of the list of collections are those of what the user may see."""
        seen = [chunk for chunk in self.chunks if not user.refusal(chunk)]
        facts = next(each for each in overview(self.bench, user) if each.info.name == "roads")
        rules = sum(chunk.rule is not None for chunk in seen)
        # Without a catalogue, none are told.
        assert (facts.chunks, facts.rules) in ((None, None), (len(seen), rules))
        return ""

    def _metrics(self, user: User) -> str:
        token = {"Authorization": f"Bearer {token_of(user)}"}
        return self.client.get("/metrics", headers=token).text

    def _counted(self, user: User) -> Counter[str]:
        counted: Counter[str] = Counter()
        for line in self._metrics(user).splitlines():
            name, _, value = line.rpartition(" ")
            if name == "ragfilter_kept_total":
                counted["kept"] = int(float(value))
            elif name.startswith("ragfilter_dropped_total"):
                counted[f"dropped {name.split(chr(34))[1]}"] = int(float(value))
        return counted


ROADS: dict[str, Callable[[Roads, User, str, str], str]] = {
    "SQL": Roads.sql,
    "HTTP search": Roads.search,
    "HTTP filter": Roads.filter,
    "HTTP rerank": Roads.rerank,
    "HTTP Dify": Roads.dify,
    "MCP": Roads.mcp,
    "traces": Roads.traces,
    "metrics": Roads.metrics,
    "errors": Roads.errors,
    "counts": Roads.counts,
}


def token_of(user: User) -> str:
    """What a user sends to the service."""
    return f"{user.level}-{'-'.join(user.departments)}"


@contextmanager
def opened(address: str, folder: Path, seed: int, *, large: bool = False) -> Iterator[Roads]:
    """The roads out of an empty database. With `large`, the collection has no catalogue."""
    rng = random.Random(seed)
    listed = chunks(rng)
    vectors = Hashed().embed([chunk.passage for chunk in listed])
    with ExitStack() as stack:
        place: dict[str, Any] = {"workspace": address, "catalogue_limit": 1 if large else 10**6}
        deployment = Deployment(**place, data_dir=folder)
        bench = stack.enter_context(OpenWorkspace.open(deployment))
        bench = replace(bench, embedder=cast(Any, Hashed()))
        database = cast(PgStore, bench.workspace.store())
        stored = [StoredRow(chunk, vector) for chunk, vector in zip(listed, vectors, strict=True)]
        database.put("roads", stored, embedder=Hashed.name, content="roads")
        damaged = {i: rng.choice(DAMAGE) for i in rng.sample(range(len(listed)), len(listed) // 8)}
        with database.changing("roads") as (connection, row):
            for i, how in damaged.items():
                change = f"UPDATE {tables.chunks_of(row)} SET {how}, edited = {row.version} WHERE id = %(id)s"
                connection.exec_driver_sql(change, {"id": listed[i].id})
                listed[i] = replace(listed[i], clearance=None)
        table = TableStore(address)
        stack.callback(table.close)
        with table.writing() as connection:
            connection.exec_driver_sql(
                "CREATE TABLE theirs (id text PRIMARY KEY, text text, department text, "
                f"v vector({DIMENSION}), meta jsonb)"
            )
            levels = ("damaged" if chunk.clearance is None else chunk.clearance for chunk in listed)
            connection.exec_driver_sql(
                "INSERT INTO theirs VALUES (%s, %s, %s, %s, %s)",
                [
                    (c.id, c.text, c.department, tables.written(v), json.dumps({"clearance": level}))
                    for c, v, level in zip(listed, vectors, levels, strict=True)
                ],
            )
        tokens = {token_hash(token_of(user)): Caller(user, metrics=True) for user in USERS}
        app = make_app(Serving(bench, "roads", SETTINGS, tokens, Caller()))
        client = stack.enter_context(TestClient(app, base_url="http://localhost"))
        provider, spans = TracerProvider(), InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(spans))
        tracing.trace(provider, texts=True)
        stack.callback(provider.shutdown)
        stack.callback(results.watch, None)
        yield Roads(bench, listed, table, client, spans)


def leaks(roads: Roads, n: int, seed: int) -> Iterator[tuple[str, list[str]]]:
    """The road of each of `n` cases, and the hidden names that came out."""
    rng = random.Random(seed)
    for name in islice(cycle(ROADS), n):
        user = rng.choice(USERS)
        hidden = roads.hidden(user)
        answer = ROADS[name](roads, user, rng.choice(QUESTIONS), rng.choice(PROFILES))
        yield name, [each for each in hidden if each in answer]


def apart(roads: Roads, turns: int) -> tuple[float, float]:
    """Median milliseconds of a search as the public, with the hidden chunks and without them."""
    database = cast(PgStore, roads.bench.workspace.store())
    seen = [chunk for chunk in roads.chunks if not User().refusal(chunk)]
    vectors = Hashed().embed([chunk.passage for chunk in seen])
    stored = [StoredRow(chunk, vector) for chunk, vector in zip(seen, vectors, strict=True)]
    database.put("twin", stored, embedder=Hashed.name, content="twin")
    took: dict[str, list[float]] = {"roads": [], "twin": []}
    for turn in range(turns):
        for name, times in took.items():
            started = time.perf_counter()
            body = {"question": QUESTIONS[turn % len(QUESTIONS)], "collection": name}
            roads.asked("/v1/search", User(), body)
            times.append((time.perf_counter() - started) * 1000)
    return median(took["roads"]), median(took["twin"])


@contextmanager
def server(address: str) -> Iterator[Callable[[], str]]:
    """Makes empty databases at an address, or on a server of its own."""
    import sqlalchemy as sa

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if not address:
            import pgserver

            started = cast(Any, pgserver).get_server(Path(folder) / "data")
            stack.callback(started.cleanup)
            address = started.get_uri()
        numbers = count()

        def make() -> str:
            engine = sa.create_engine(
                sa.make_url(address).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
            )
            url = sa.make_url(address).set(database=f"roads{next(numbers)}_{time.time_ns()}")
            with engine.connect() as connection:
                connection.execute(sa.text(f"CREATE DATABASE {url.database}"))
            engine.dispose()
            return str(url.render_as_string(hide_password=False))

        yield make


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--address", default="")
    parser.add_argument("--worlds", type=int, default=10)
    given = parser.parse_args()
    cases: Counter[str] = Counter()
    leaked: Counter[str] = Counter()
    started = time.monotonic()
    with server(given.address) as make, tempfile.TemporaryDirectory() as folder:
        for world in range(given.worlds):
            place = Path(folder) / str(world)
            with opened(make(), place, world, large=world % 2 == 1) as roads:
                for name, found in leaks(roads, given.cases // given.worlds, world):
                    cases[name] += 1
                    if found:
                        leaked[name] += 1
                        print(f"world {world}, {name}: {found[:5]} leaked")
                if world == 0:
                    with_hidden, without = apart(roads, 100)
    for name, n in cases.items():
        print(f"{name}: {n} cases, {leaked[name]} leaks")
    print(
        f"{cases.total()} cases, {leaked.total()} leaks, {time.monotonic() - started:.0f} s; a "
        f"search took {with_hidden:.1f} ms with hidden chunks and {without:.1f} ms without"
    )


if __name__ == "__main__":
    main()
