"""Runs commands as `ragfilter` does, in this process or in a new one."""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from waiting import PROCESS_S

from ragfilter.cli.program import main

ROOT = Path(__file__).resolve().parents[1]


class Cli:
    """Runs commands with these flags appended. Returns their output, and keeps standard error in
    `err`. The first text of a command is split into words, the others are taken as they are."""

    def __init__(self, capsys: pytest.CaptureFixture[str], where: Sequence[str] = ()) -> None:
        self.capsys = capsys
        self.where = where
        self.err = ""

    def __call__(self, words: str, *args: str, code: int = 0) -> str:
        self.capsys.readouterr()
        found = main([*shlex.split(words), *args, *self.where])
        out, self.err = self.capsys.readouterr()
        assert found == code, self.err
        return out

    def json(self, words: str, *args: str, code: int = 0) -> Any:
        return json.loads(self(words, *args, "--json", code=code))

    def refused(self, words: str, *args: str) -> str:
        """The one line on standard error of a command that is refused."""
        assert self(words, *args, code=2) == ""
        assert self.err.startswith("ragfilter: ")
        assert "Traceback" not in self.err
        assert self.err.count("\n") == 1
        return self.err.removeprefix("ragfilter: ").rstrip("\n")


def write(path: Path, *records: object) -> str:
    """Write a file with one record per line, or a text as it is. Returns its path."""
    text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Undo what a command does to logging."""
    root, ours = logging.getLogger(), logging.getLogger("ragfilter")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level, ours.level = before[0], before[1], before[2]


# Without this, root could write more than the file's mode says.
AS_A_PLAIN_USER = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


def run(
    *args: str, plain_user: bool = False, encoding: str = "utf-8", **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process. `plain_user` removes root's rights over files."""
    drop = AS_A_PLAIN_USER if plain_user and os.geteuid() == 0 else []
    return subprocess.run(
        [*drop, sys.executable, "-m", "ragfilter", *args],
        cwd=ROOT,
        env=os.environ | environ,
        capture_output=True,
        encoding=encoding,
        timeout=PROCESS_S,
    )


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command."""
    return Cli(capsys)
