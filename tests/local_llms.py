"""A real LLM on loopback for tests: the optional extra, served by its own process."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import PROCESS_S

from ragfilter.errors import InputError
from scripts.local_llm import model_file

ROOT = Path(__file__).resolve().parents[1]
ANSWER_TOKENS = 60


@dataclass(frozen=True, slots=True)
class LocalLlm:
    """The running server: its process and its output."""

    process: subprocess.Popen[str]
    base_url: str
    model: str


def must_be_installed() -> None:
    """Skip if the extra is not installed; fail if it is required."""
    try:
        model_file()
    except InputError as error:
        if os.environ.get("RAGFILTER_TEST_REQUIRE_LLM"):
            pytest.fail(f"the local LLM is required for this run: {error}")
        pytest.skip(str(error))


@contextmanager
def served(environ: Mapping[str, str]) -> Iterator[LocalLlm]:
    """Run `python -m scripts.local_llm` on a free port; always killed at the end."""
    command = [sys.executable, "-m", "scripts.local_llm", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--answer-tokens", str(ANSWER_TOKENS)],
        cwd=ROOT, env=dict(environ), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        values = dict(line.removeprefix("export ").split("=", 1) for line in _lines(process, 2))
        yield LocalLlm(process, values["OPENAI_BASE_URL"], values["OPENAI_MODEL"])
    finally:
        process.kill()
        process.wait()


def _lines(process: subprocess.Popen[str], count: int) -> list[str]:
    """The first lines of its output, read with a deadline, which reading a pipe does not have."""
    assert process.stdout is not None
    stream = process.stdout
    read: queue.Queue[str] = queue.Queue()
    threading.Thread(
        target=lambda: [read.put(stream.readline()) for _ in range(count)], daemon=True
    ).start()
    lines = [read.get(timeout=PROCESS_S).strip() for _ in range(count)]
    assert all(lines), f"the server ended with code {process.wait(PROCESS_S)}"
    return lines
