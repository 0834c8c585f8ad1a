"""A real LLM on loopback for the tests in this folder: the optional extra, served by its own process."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PROCESS_S

from ragfilter.errors import InputError
from ragfilter.models.openai import OpenAIChat
from scripts.local_llm import model_file

ROOT = Path(__file__).resolve().parents[2]
ANSWER_TOKENS = "60"


@pytest.fixture(scope="session")
def _installed() -> None:
    """Skip if the extra is not installed; fail if it is required."""
    try:
        model_file()
    except InputError as error:
        if os.environ.get("RAGFILTER_TEST_REQUIRE_LLM"):
            pytest.fail(f"the local LLM is required for this run: {error}")
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def chat(_installed: None, bare_environ: dict[str, str]) -> Iterator[OpenAIChat]:
    """Run `python -m scripts.local_llm` on a free port; always killed at the end."""
    command = [sys.executable, "-m", "scripts.local_llm", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--answer-tokens", ANSWER_TOKENS],
        cwd=ROOT,
        env=bare_environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        values = dict(line.removeprefix("export ").split("=", 1) for line in _lines(process, 2))
        made = OpenAIChat(model=values["OPENAI_MODEL"], base_url=values["OPENAI_BASE_URL"])
        yield made
        made.close()
    finally:
        process.kill()
        process.wait()


def _lines(process: subprocess.Popen[str], count: int) -> list[str]:
    """The first lines of its output, read with a deadline, which reading a pipe does not have."""
    assert process.stdout is not None
    stream = process.stdout
    read: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: [read.put(stream.readline()) for _ in range(count)], daemon=True).start()
    lines = [read.get(timeout=PROCESS_S).strip() for _ in range(count)]
    assert all(lines), f"the server ended with code {process.wait(PROCESS_S)}"
    return lines
