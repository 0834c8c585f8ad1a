"""What questions and edits meet while their PostgreSQL is killed, frozen, restarted or failed over.

    PYTHONPATH=. python benchmarks/server_faults.py

Three threads ask and one edits rules, without a pause, over a TCP proxy in front of `pgserver`. A fault hits them in
mid-question. It lasts longer than the deadlines: 10 s for a question, 15 s for an edit. A failover is a kill, after
which the proxy leads to a second server with a copy of the data. For each fault: how long a question and an edit took
at most, what they were told, and how soon they were answered once the server was there again. At the end, each chunk
must have the last rule that was acknowledged, or one of which nobody said whether it was saved, and the journal the
same.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pgserver
import psutil  # type: ignore[import-untyped]

from benchmarks.clearance_roads import DIMENSION, SETTINGS, Hashed
from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.errors import OutcomeUnknown, RagfilterError
from ragfilter.model import UNRESTRICTED, Chunk
from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.rules.rule import parse
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.postgres.store import PgStore

CHUNKS, ASKERS = 300, 3
CALM_S, FAULT_S = 3.0, 20.0


class Proxy:
    """A port that leads to the socket `target`."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._bound = socket.create_server(("127.0.0.1", 0))
        self.port = self._bound.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._bound.accept()
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                continue
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Server:
    """A server of its own, on a data folder."""

    def __init__(self, folder: Path) -> None:
        self._server = cast(Any, pgserver).get_server(folder)
        self.folder = folder

    @property
    def socket(self) -> str:
        return f"{self._server.get_postmaster_info().socket_dir}/.s.PGSQL.5432"

    def signal(self, number: int) -> None:
        """Send a signal to all of its processes."""
        first = psutil.Process(self._server.get_pid())
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def start(self) -> None:
        self._server.ensure_postgres_running()


class Told:
    """What calls met: (begun, seconds, error)."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float, str]] = []

    def call(self, work: Callable[[], object]) -> RagfilterError | None:
        begun = time.monotonic()
        failed: RagfilterError | None = None
        try:
            work()
        except RagfilterError as error:
            failed = error
        self.calls.append((begun, time.monotonic() - begun, str(failed or "")))
        return failed

    def about(self, start: float, back: float, end: float) -> dict[str, Any]:
        """A fault began at `start`, and was over at `back`."""
        met = [each for each in self.calls if start - 1 < each[0] + each[1] and each[0] < end]
        again = [at + took - back for at, took, said in met if at > back and not said]
        return {
            "longest, s": round(max(took for _, took, _ in met), 2),
            "told": Counter(said for *_, said in met if said).most_common(3),
            "answered again after, s": round(min(again), 2),
        }


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o755)
        server = Server(Path(root) / "first")
        proxy = Proxy(server.socket)
        address = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
        store, journal, embedder = PgStore(address), Journal(address), Hashed()
        chunks = [Chunk(f"c{n:03d}", f"the cleric of word{n % 10}") for n in range(CHUNKS)]
        vectors = embedder.embed([chunk.text for chunk in chunks])
        assert vectors.shape[1] == DIMENSION
        rows = [StoredRow(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)]
        store.put("faults", rows, embedder="hashed")
        asking, editing, over = Told(), Told(), threading.Event()
        last: dict[str, set[str | None]] = {}
        acknowledged: Counter[str] = Counter()

        def ask() -> None:
            while not over.is_set():
                asking.call(
                    lambda: search_and_filter(
                        "What does the cleric need?",
                        SETTINGS,
                        Backends(store.collection("faults"), embedder),
                        UNRESTRICTED,
                    )
                )

        def edit() -> None:
            turn = 0
            while not over.is_set():
                turn += 1
                chunk_id, rule = f"c{turn % 20:03d}", json.dumps({"contain": f"term {turn}"})

                def save(chunk_id: str = chunk_id, rule: str = rule) -> None:
                    collection = store.collection("faults")
                    before = collection.rules([chunk_id])[chunk_id]
                    edits.save(collection, journal, chunk_id=chunk_id, rule=rule, expected=before, who="editor")

                failed = editing.call(save)
                stored = parse(rule).text
                if failed is None:
                    last[chunk_id] = {stored}
                elif isinstance(failed, OutcomeUnknown):
                    last.setdefault(chunk_id, {None}).add(stored)
                acknowledged["unknown" if isinstance(failed, OutcomeUnknown) else "failed" if failed else "saved"] += 1

        threads = [threading.Thread(target=ask) for _ in range(ASKERS)]
        threads.append(threading.Thread(target=edit))
        for thread in threads:
            thread.start()

        def fault(name: str, begin: Callable[[], None], mend: Callable[[], None]) -> None:
            time.sleep(CALM_S)
            start = time.monotonic()
            begin()
            time.sleep(FAULT_S)
            mend()
            back = time.monotonic()
            time.sleep(2 * CALM_S)
            end = time.monotonic()
            found = {"asked": asking.about(start, back, end)}
            found["edited"] = editing.about(start, back, end)
            print(name, json.dumps(found, indent=2), flush=True)

        second: list[Server] = []

        def fail_over() -> None:
            copy = Path(root) / "second"
            subprocess.run(["cp", "-a", server.folder, copy], check=True)
            for each in ("postmaster.pid", "postmaster.opts"):
                (copy / each).unlink(missing_ok=True)
            shutil.rmtree(server.folder)
            second.append(Server(copy))
            proxy.target = second[0].socket

        fault("killed", lambda: server.signal(signal.SIGKILL), server.start)
        fault("frozen", lambda: server.signal(signal.SIGSTOP), lambda: server.signal(signal.SIGCONT))
        fault("restarted", lambda: os.kill(server._server.get_pid(), signal.SIGINT), server.start)
        fault("failed over", lambda: server.signal(signal.SIGKILL), fail_over)
        over.set()
        for thread in threads:
            thread.join()
        found = store.collection("faults").rules(list(last))
        written = journal.edited_rules("faults")
        print(dict(acknowledged))
        print("lost:", sum(found[i] not in rules for i, rules in last.items()))
        print("store and journal differ:", sum(found[i] != written.get(i) for i in last))
        second[0].signal(signal.SIGKILL)
        os._exit(0)


if __name__ == "__main__":
    main()
