"""`ragfilter rules test`: expectations as data, over a collection's rules or those of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rule_runs import Run, make_workspace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rules") / "ws"
    make_workspace(made)
    return made


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(folder, capsys)


def write(path: Path, *lines: object) -> str:
    """A file with these lines; objects are written as JSON."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


MET = {"question": "cleric against armor", "stay": ["cleric-6", "boat"], "go": ["troll"]}
BROKEN = {"question": "a troll", "stay": ["cleric-6", "nobody"], "go": ["boat", "troll"]}


def test_expectations_that_hold(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", MET, "")
    assert run("test", file) == "1 question, 3 expectations, 0 broken\n"
    assert run.err == ""


def test_what_is_broken_is_told_by_line_with_the_reason(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "e.jsonl", MET, "", BROKEN)
    assert run("test", file, code=1).splitlines() == [
        "line 3: cleric-6 must stay: no term of group 1: cleric, clerics (a troll)",
        "line 3: nobody must stay: the collection has no such chunk (a troll)",
        "line 3: boat must go: no rule (a troll)",
        "line 3: troll must go: rule holds: troll (a troll)",
        "2 questions, 7 expectations, 4 broken",
    ]


def test_json_is_one_document(run: Run, tmp_path: Path) -> None:
    made = run.json("test", write(tmp_path / "e.jsonl", MET, BROKEN), code=1)
    first = made["broken"].pop(0)
    assert first == {
        "line": 2, "question": "a troll", "chunk_id": "cleric-6", "must": "stay",
        "reason": "no term of group 1: cleric, clerics",
    }  # fmt: skip
    assert len(made.pop("broken")) == 3
    assert made == {"questions": 2, "tested": 7, "incomplete": ""}


def test_a_hidden_chunk_is_tested_like_one_that_does_not_exist(run: Run, tmp_path: Path) -> None:
    told = []
    for i in ("secret", "absent"):
        file = write(tmp_path / "e.jsonl", {"question": "boats", "stay": ["boat"], "go": [i]})
        told.append(run("test", file, code=1).replace(i, "ID") + run.err)
    assert told[0] == told[1]
    assert told[0].startswith("line 1: ID must go: the collection has no such chunk")
    secret = write(tmp_path / "e.jsonl", {"question": "boats", "go": ["secret"]})
    assert "secret must go: no rule" in run("test", secret, "--level", "4", code=1)


def test_an_exported_file_is_tested_without_a_workspace(run: Run, tmp_path: Path) -> None:
    exported = tmp_path / "rules.jsonl"
    run("export", "--out", str(exported))
    run.folder = tmp_path / "none"
    file = write(tmp_path / "e.jsonl", MET)
    assert run("test", file, "--rules", str(exported)).endswith("0 broken\n")
    assert not run.folder.exists()
    exported.write_text(
        exported.read_text().replace('["troll", "trolls"]', '["owl"]'), encoding="utf-8"
    )
    owls = write(tmp_path / "e.jsonl", {"question": "troll", "stay": ["troll"]})
    assert run("test", owls, "--rules", str(exported), code=1).endswith("1 broken\n")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "is not valid JSON"),
        ([], "is not a JSON object"),
        ({"stay": ["boat"]}, "has no question"),
        ({"question": "x"}, "expects nothing"),
        ({"question": "x", "stay": "boat"}, "stay is not a list of chunk ids"),
        ({"question": "x", "go": [3]}, "go is not a list of chunk ids"),
        ({"question": "x", "keep": ["boat"]}, "unknown key 'keep'"),
        ({"question": "x", "go": ["a"], "stay": ["a"]}, "'a' must both stay and go"),
    ],
)
def test_a_bad_line_is_named_by_number(run: Run, tmp_path: Path, line: object, why: str) -> None:
    file = write(tmp_path / "e.jsonl", MET, line)
    assert run("test", file, code=2) == ""
    assert f"{file}, line 2" in run.err
    assert why in run.err
    assert run.err.count("\n") == 1


def test_files_that_cannot_be_used(run: Run, tmp_path: Path) -> None:
    run("test", write(tmp_path / "e.jsonl", ""), code=2)
    assert "contains no expectations" in run.err
    run("test", str(tmp_path / "gone.jsonl"), code=2)
    assert "cannot be read" in run.err
    rules = write(tmp_path / "r.jsonl", {"id": "a", "query_must": None}, {"query_must": {}})
    run("test", write(tmp_path / "e.jsonl", MET), "--rules", rules, code=2)
    assert f"{rules}, line 2: the id is missing or is not text." in run.err
