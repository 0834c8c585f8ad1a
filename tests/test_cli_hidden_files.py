"""`--files` with a pattern that matches only hidden files: as if it matched none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragfilter.cli.program import main

pytestmark = pytest.mark.model

RECORDS = [
    {"id": "open", "text": "A boat carries four people.", "source": "boats.md"},
    {"id": "hush", "text": "The queen fears silver.", "source": "throne.md", "clearance": 4},
    {"id": "hr", "text": "Nobody is paid.", "source": "wages.md", "department": "hr"},
]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hidden")
    source = folder / "chunks.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in RECORDS), encoding="utf-8")
    args = ["index", str(source), "--collection", "small", "--data-dir", str(folder / "ws")]
    assert main(args) == 0
    return folder / "ws"


@pytest.mark.parametrize("flags", [[], ["--json"], ["--debug"], ["--json", "--debug", "--answer"]])
@pytest.mark.parametrize(
    ("hidden", "nothing"), [("throne.md", "stable.md"), ("t*", "x*"), ("thr", "xyz"), ("wages", "ledge")]
)
def test_streams_and_exit_code_are_the_same(
    workspace: Path, capsys: pytest.CaptureFixture[str], hidden: str, nothing: str, flags: list[str]
) -> None:
    told = []
    for pattern in (hidden, nothing):
        args = ["query", "What does the queen fear?", "-c", "small", "-p", "adaptive-retrieval"]
        capsys.readouterr()
        code = main([*args, "--files", pattern, *flags, "--data-dir", str(workspace)])
        run = capsys.readouterr()
        told.append((code, run.out, run.err.replace(repr(pattern), "PATTERN")))
    assert told[0] == told[1]
    assert told[0][:2] == (2, "")
    assert "boats.md" in told[0][2]
    assert "throne" not in told[0][2]
