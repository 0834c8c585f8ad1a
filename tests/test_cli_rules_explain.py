"""`ragfilter rules explain`: questions in a file or on standard input, and a rule part by part."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from rule_runs import Run, make_workspace

from ragfilter.stores.workspace import Workspace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rules") / "ws"
    make_workspace(made)
    return made


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(folder, capsys)


def test_questions_of_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("a cleric\n\nclerics and a troll\nboats\n")
    made = run.json("explain", str(file))
    assert (made["collection"], made["questions"]) == ("small", 3)
    rows = {row["chunk_ids"][0]: (row["passes"], row["blocks"]) for row in made["rules"]}
    assert rows == {"cleric-6": (2, 1), "troll": (1, 2)}
    assert run("explain", str(file)).splitlines()[-1] == (
        "2 rules, 3 questions: 0 block always, 2 block sometimes, 0 block never"
    )


def test_a_rule_that_cannot_be_read_is_no_pass(run: Run, tmp_path: Path) -> None:
    other = Run(shutil.copytree(run.folder, tmp_path / "ws"), run.capsys)
    with Workspace.open(other.folder) as opened:
        opened.store().collection("small").set_rules({"boat": "{"})
    printed = other("explain", "--question", "a troll")
    assert next(line.split() for line in printed.splitlines() if line.startswith("boat")) == [
        "boat", "1", "0", "unreadable",
    ]  # fmt: skip
    assert printed.endswith("1 block always, 0 block sometimes, 1 block never, 1 unreadable\n")


def test_questions_of_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a troll\n"))
    rows = run("explain").splitlines()
    assert [line.split() for line in rows[1:3]] == [
        ["troll", "1", "0", "never"], ["cleric-6", "0", "1", "always"],
    ]  # fmt: skip


def test_one_question_and_one_chunk(run: Run, snapshot: Any) -> None:
    for question in ("Clerics, and a cleric", "which klerik is best", "the cleriks"):
        assert run("explain", "--question", question, "--chunk", "cleric-6") == snapshot
    document = run.json("explain", "--question", "Is it the cleriks?!", "--chunk", "cleric-6")
    assert document == snapshot


@pytest.mark.parametrize("chunk", ["nobody", "boat", "secret"])
def test_a_chunk_without_a_rule_cannot_be_explained(run: Run, chunk: str) -> None:
    run("explain", "--question", "x", "--chunk", chunk, code=2)
    assert f"There is no chunk '{chunk}' with a rule." in run.err


def test_what_cannot_be_used(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("\n")
    run("explain", str(file), code=2)
    assert "There are no questions." in run.err
    file.write_text("one\ntwo\n")
    run("explain", str(file), "--chunk", "troll", code=2)
    assert "--chunk explains one question." in run.err
