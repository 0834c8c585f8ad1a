"""`make app` for a newcomer: a busy port, a first start, a second one. Run with `make smoke`.

Not a pytest file: it starts what the Makefile starts, in the venv that the Makefile made.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONGEST_S = 600
"""How long a start may take on a busy machine; a first one embeds the demo, a second one does not."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        refused(workspace)
        first, indexed = started(workspace)
        assert " added" in indexed, indexed
        second, indexed = started(workspace)
        assert " unchanged" in indexed, indexed
        assert " added" not in indexed, indexed
    sys.stdout.write(f"make app: first start {first:.1f} s, second {second:.1f} s\n")


def refused(workspace: Path) -> None:
    """A busy port ends the start with one line that says what to do, before anything is indexed."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        made = subprocess.run(
            make(port), cwd=ROOT, env=environ(workspace), capture_output=True, text=True, timeout=LONGEST_S
        )
    ours = [line for line in made.stderr.splitlines() if not line.startswith("make")]
    assert made.returncode != 0, made
    assert len(ours) == 1, ours
    assert f"port {port}" in ours[0], ours
    assert "make app PORT=" in ours[0], ours
    assert not workspace.exists(), "it was indexed before the port was looked at"


def started(workspace: Path) -> tuple[float, str]:
    """Start the app, wait until it is healthy, and stop it. Returns the seconds and its output."""
    port, begun = free_port(), time.monotonic()
    log = workspace.parent / f"{port}.log"
    with log.open("wb") as output:
        # In its own process group, so that all of it can be stopped.
        process = subprocess.Popen(
            make(port), cwd=ROOT, env=environ(workspace), stdout=output, stderr=output, start_new_session=True
        )
        try:
            while not healthy(port):
                printed = log.read_text(encoding="utf-8")
                assert process.poll() is None, f"it ended by itself:\n{printed}"
                assert time.monotonic() - begun < LONGEST_S, f"it does not come up:\n{printed}"
                time.sleep(0.2)
            return time.monotonic() - begun, log.read_text(encoding="utf-8")
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(LONGEST_S)


def make(port: int) -> list[str]:
    return ["make", "--no-print-directory", "app", f"PORT={port}"]


def environ(workspace: Path) -> dict[str, str]:
    return {**os.environ, "RAGFILTER_DATA_DIR": str(workspace)}


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
