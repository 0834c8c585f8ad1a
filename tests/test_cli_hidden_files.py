"""`--files` with a pattern that matches only hidden files: on every stream as if it matched none.
Labels of hidden chunks count nowhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragfilter.cli import main

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
    ("hidden", "nothing"),
    [("throne.md", "stable.md"), ("t*", "x*"), ("thr", "xyz"), ("wages", "ledge")],
)
def test_streams_and_exit_code_are_the_same(
    workspace: Path,
    capsys: pytest.CaptureFixture[str],
    hidden: str,
    nothing: str,
    flags: list[str],
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


@pytest.mark.parametrize(
    "command",
    [
        "eval",
        "eval --against full",
        "eval --vary cutoff.max_results=1,5",
        "gate --max f1=1",
        "tune --no-rerank",
    ],
)
def test_figures_are_the_same_without_the_labels_of_hidden_chunks(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    asked, labels = tmp_path / "queries.jsonl", tmp_path / "qrels.tsv"
    asked.write_text(
        "".join(json.dumps({"_id": f"q{n}", "text": "Who sits in a boat?"}) + "\n" for n in (1, 2))
    )
    args = [
        *command.split(), "-c", "small", "-p", "adaptive-gap", "--set", "clearance.enabled=true",
        "--queries", str(asked), "--qrels", str(labels), "--json", "--data-dir", str(workspace),
    ]  # fmt: skip
    told = []
    for hidden in ("q1\thush\t1\nq2\thr\t1\n", ""):
        labels.write_text(f"q1\topen\t1\nq2\topen\t1\n{hidden}")
        capsys.readouterr()
        assert main(args) == 0
        told.append(figures(json.loads(capsys.readouterr().out)))
    assert told[0] == told[1]
    assert any(told[0])


def figures(made: dict[str, Any]) -> list[Any]:
    """The figures of a command that count labels, without times."""
    recall = [row["recall"] for row in made.get("rows", ())]
    return [recall, *(made.get(name) for name in ("filtered", "checks", "after"))]
