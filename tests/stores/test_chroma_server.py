"""Chroma over HTTP: a real server, and servers that are dead or silent."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import numpy as np
import pytest
from waiting import PATIENT_S, PROCESS_S, SILENT_S, ends_after

from ragfilter.errors import InputError, StoreUnavailable
from ragfilter.model import Chunk
from ragfilter.stores.chroma import ChromaStore, Server
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.workspace_files import Workspace

RIGHT = np.array([1, 0], dtype=np.float32)
UP = np.array([0, 1], dtype=np.float32)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def chroma_run(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A real Chroma server on loopback (URL, process), always stopped at the end."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder)]
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + PROCESS_S
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/api/v2/heartbeat", timeout=PATIENT_S).is_success:
                    break
            if process.poll() is not None:
                pytest.fail("the Chroma server did not start")
            if time.monotonic() > until:
                pytest.fail("the Chroma server did not answer")
            time.sleep(0.1)
        yield url, process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def connect() -> Iterator[Callable[[str], ChromaStore]]:
    """Opens stores of a server, and closes them after the test."""
    with contextlib.ExitStack() as closing:

        def connect_(url: str) -> ChromaStore:
            store = Server(url, timeout_s=PATIENT_S).open()
            closing.callback(store.close)
            return store

        yield connect_


def test_writes_of_a_second_client_are_seen(tmp_path: Path, connect: Callable[[str], ChromaStore]) -> None:
    with chroma_run(tmp_path / "server") as (url, _):
        store = connect(f"{url}/")
        collection = store.create("demo", embedder="fake")
        collection.write([StoredRow(Chunk("a", "text a"), RIGHT), StoredRow(Chunk("b", clearance=2), UP)])
        # Versions are asked of the server.
        other = connect(url).collection("demo")
        collection.catalogue()
        before = collection.version
        other.set_rules({"a": "{}"})
        assert collection.version != before
        assert collection.catalogue()["a"].rule == "{}"
        assert [(i.name, i.count, i.embedder) for i in store.collections()] == [("demo", 2, "fake")]
    with pytest.raises(StoreUnavailable) as error:
        collection.nearest(RIGHT, 1)
    assert url in error.value.message


def test_two_processes_share_a_workspace_through_a_server(tmp_path: Path) -> None:
    with chroma_run(tmp_path / "server") as (url, _):
        program = (
            "import sys; from ragfilter.stores.workspace_files import Workspace;"
            "from ragfilter.stores.chroma import Server;"
            "w = Workspace.open(sys.argv[1], server=Server(sys.argv[2]));"
            "print([i.name for i in w.store().collections()])"
        )
        with Workspace.open(tmp_path / "ws", server=Server(url)) as workspace:
            workspace.store().create("demo", embedder="fake")
            command = [sys.executable, "-c", program, str(tmp_path / "ws"), url]
            other = subprocess.run(command, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == "['demo']"


def test_a_dead_server_is_told_at_once() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(StoreUnavailable, match=url) as error:
        Server(url, timeout_s=PATIENT_S).open()
    assert error.value.remedy


class Handler(BaseHTTPRequestHandler):
    """Answers only the heartbeat."""

    hang = threading.Event()

    def do_GET(self) -> None:
        if self.path.endswith("/heartbeat"):
            body = b'{"nanosecond heartbeat": 1}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            self.hang.wait(SILENT_S)

    def log_message(self, *args: object) -> None:
        pass


@contextlib.contextmanager
def hanging() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        Handler.hang.set()
        server.shutdown()
        server.server_close()
        Handler.hang.clear()


def test_a_server_that_hangs_after_the_heartbeat_is_given_up() -> None:
    late = pytest.raises(StoreUnavailable, match="in time")
    with hanging() as url, ends_after(0.5), late:
        Server(url, timeout_s=0.5).open()


def test_a_server_that_goes_deaf_later_is_given_up(tmp_path: Path, connect: Callable[[str], ChromaStore]) -> None:
    with chroma_run(tmp_path) as (url, process):
        store = connect(url)
        collection = store.create("demo", embedder="fake")
        session: httpx.Client = store.client._server._session  # type: ignore[attr-defined]
        assert session.timeout == httpx.Timeout(PATIENT_S)
        process.send_signal(signal.SIGSTOP)
        # Short only while it is silent: on a busy machine an answer may take long.
        session.timeout = httpx.Timeout(0.5)
        try:
            with ends_after(0.5), pytest.raises(StoreUnavailable, match="in time"):
                collection.count()
        finally:
            session.timeout = httpx.Timeout(PATIENT_S)
            process.send_signal(signal.SIGCONT)
        assert collection.count() == 0


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host", "http://", "http://host:99999", "http://[::1"])
def test_what_is_not_the_url_of_a_server(url: str) -> None:
    with pytest.raises(InputError) as error:
        Server(url).open()
    assert "http://127.0.0.1:8000" in error.value.remedy
