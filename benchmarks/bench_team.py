"""A team on one PostgreSQL: two instances of the app, the service, and editors of rules.

    PYTHONPATH=. python benchmarks/bench_team.py [--sessions 20] [--seconds 300] [--address ADDRESS]

Half of the sessions are on each instance, and each moves a slider half a second after every picture. Four clients ask
the service once a second, and three processes edit rules twice a second: every fourth time one of five chunks that all
of them edit. At the end, each chunk must hold the last edit that was acknowledged, and the journal all of them. Goal:
nothing lost, no error, and 95 of 100 moves within 1 s. Without an address, `pgserver` starts a server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from websockets.sync.client import connect
from websockets.typing import Subprotocol

from benchmarks.bench_browser import ROOT, served
from benchmarks.bench_sessions import PAUSE_S, Session
from benchmarks.clearance_roads import server
from ragfilter.errors import ConflictError
from ragfilter.ingest.bundled import queries
from ragfilter.library.workspace import open_workspace
from ragfilter.rules import edits

EDITORS, ASKERS, SHARED, OWN = 3, 4, 5, 60


def edit(address: str, number: int, seconds: float) -> None:
    """Edit rules, and print what was acknowledged (time, chunk, rule) and how many edits met a conflict, as JSON."""
    chance, acknowledged, conflicts = random.Random(number), [], 0
    until = time.time() + seconds
    with open_workspace(address) as bench:
        ids = sorted(bench.collection("demo").entries())
        own, shared = ids[number::EDITORS][:OWN], ids[-SHARED:]
        turn = 0
        while time.time() < until:
            turn += 1
            chunk = chance.choice(own if turn % 4 else shared)
            rule = json.dumps({"contain": f"term {number} {turn}"}, separators=(",", ":"))
            store = bench.collection("demo")
            before = store.rules([chunk])[chunk]
            try:
                edits.save(store, bench.journal, chunk_id=chunk, rule=rule, expected=before, who=f"editor{number}")
                acknowledged.append((time.time(), chunk, rule))
            except ConflictError:
                conflicts += 1
            time.sleep(0.5)
    print(json.dumps([acknowledged, conflicts]))


def visit(url: str, question: str, until: float) -> tuple[float, list[float], list[str]]:
    """The seconds until the first picture, and until each after a move; and the errors on the page."""
    params = {"q": question, "profile": "full", "collection": "demo", "open": "tuning"}
    address = f"{url.replace('http', 'ws')}/_stcore/stream"
    with connect(address, subprotocols=[Subprotocol("streamlit")], max_size=None) as connected:
        session = Session(connected, urlencode(params))
        first = session.open()
        moves: list[float] = []
        while time.time() < until:
            moves.append(session.move(0.1 + 0.04 * (len(moves) % 20)))
            time.sleep(PAUSE_S)
        return first, moves, session.errors


def ask(url: str, questions: list[str], until: float) -> list[float]:
    """The seconds of each answer of the service."""
    seconds = []
    for question in cycle(questions):
        if time.time() >= until:
            break
        began = time.perf_counter()
        body = json.dumps({"question": question}).encode()
        urlopen(Request(f"{url}/v1/search", body, {"Content-Type": "application/json"})).close()
        seconds.append(time.perf_counter() - began)
        time.sleep(1)
    return seconds


@contextmanager
def service(address: str) -> Iterator[str]:
    """The address of the service on the workspace."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ragfilter", "serve", "-c", "demo", "--port", str(port)]
    environ = {**os.environ, "RAGFILTER_WORKSPACE": address}
    process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                urlopen(f"{url}/readyz").close()
                break
            except OSError:
                assert process.poll() is None, "the service did not start"
                time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait()


def share(values: list[float], of: float) -> float:
    """The value that this share of the values do not exceed."""
    return round(sorted(values)[int(len(values) * of)], 3)


def measure(address: str, sessions: int, seconds: float) -> dict[str, Any]:
    questions = list(queries("demo").values())
    with ExitStack() as stack:
        apps = [stack.enter_context(served(address))[0] for _ in range(2)]
        served_at = stack.enter_context(service(address))
        pool = stack.enter_context(ThreadPoolExecutor(sessions + ASKERS))
        until = time.time() + seconds
        command = [sys.executable, __file__, "--address", address, "--seconds", str(seconds)]
        editors = [
            subprocess.Popen([*command, "--edits", str(n)], stdout=subprocess.PIPE, text=True) for n in range(EDITORS)
        ]
        questions_asked = islice(cycle(questions), sessions)
        visits = [pool.submit(visit, apps[n % 2], q, until) for n, q in enumerate(questions_asked)]
        asking = [pool.submit(ask, served_at, questions[n:], until) for n in range(ASKERS)]
        firsts = [future.result()[0] for future in visits]
        moves = [move for future in visits for move in future.result()[1]]
        errors = [error for future in visits for error in future.result()[2]]
        answers = [answer for future in asking for answer in future.result()]
        edited = [json.loads(each.communicate()[0]) for each in editors]
    acknowledged = sorted(tuple(each) for done, _ in edited for each in done)
    last = {chunk: rule for _, chunk, rule in acknowledged}
    with open_workspace(address) as bench:
        stored = bench.collection("demo").rules(list(last))
        steps = bench.journal.steps("demo", limit=10**6)
        written = bench.journal.edited_rules("demo")
    return {
        "sessions": sessions,
        "seconds": seconds,
        "moves": len(moves),
        "errors on pages": len(errors),
        "first error": next(iter(errors), ""),
        "last first picture, s": round(max(firsts), 2),
        "slider p50, s": share(moves, 0.5),
        "slider p95, s": share(moves, 0.95),
        "answers of the service": len(answers),
        "answer p95, s": share(answers, 0.95),
        "acknowledged edits": len(acknowledged),
        "in the journal": sum(step.edit.who.startswith("editor") for step in steps),
        "conflicts": sum(met for _, met in edited),
        "lost": sum(stored[chunk] != rule for chunk, rule in last.items()),
        "store and journal differ": sum(stored[chunk] != written[chunk] for chunk in last),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--address", default="")
    parser.add_argument("--edits", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.edits is not None:
        edit(given.address, given.edits, given.seconds)
        return
    with server(given.address) as make:
        print(json.dumps(measure(make(), given.sessions, given.seconds), indent=2))


if __name__ == "__main__":
    main()
