"""Runs commands in this process, as `ragfilter` does."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragfilter.cli import main


class Cli:
    """Runs commands with these flags at their end; returns what they print, and keeps `err`. The
    first words of a command are split, the others taken as they are."""

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
    """A file with a record on each line; a text is written as it is. Returns its path."""
    text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records)
    path.write_text(text, encoding="utf-8")
    return str(path)
