"""`ragfilter rules list`: all chunks with their rules, most urgent first."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from rule_runs import GOOD, SPREAD, Run, make_workspace

from ragfilter.cli.access import open_for
from ragfilter.stores.workspace import Workspace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rules") / "ws"
    make_workspace(made)
    with Workspace.open(made) as opened:
        store = opened.store().collection("small")
        store.set_rules({"boat": "{", "cleric-7": SPREAD})
    return made


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(folder, capsys)


def test_what_needs_attention_most_comes_first(run: Run) -> None:
    assert run("list").splitlines() == [
        "state    id        title                            rule",
        "invalid  boat      Boats                            invalid: line 1, column 2: this is "
        "not valid JSON (Expecting property name enclosed in double quotes).",
        "warning  cleric-7  Attack matrix for clerics, AC 7  cleric · druid · monk",
        "none     cleric-8  Attack matrix for clerics, AC 8",
        "valid    cleric-6  Attack matrix for clerics, AC 6  cleric +1",
        "valid    troll     Troll                            troll +1",
        "small: 5 of 5 chunks",
    ]


def test_json_is_one_document_with_whole_rules(run: Run) -> None:
    made = run.json("list", "--state", "valid", "--type", "special")
    assert made == {
        "collection": "small", "chunks": 5, "found": 1, "incomplete": "",
        "rows": [
            {
                "id": "cleric-6", "title": "Attack matrix for clerics, AC 6", "type": "special",
                "source": "", "state": "valid", "changed": False, "rule": GOOD,
                "brief": "cleric +1",
            }
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        (("--text", "MATRIX ac"), ["cleric-7", "cleric-8", "cleric-6"]),
        (("--text", "trolls"), ["troll"]),
        (("--text", "trolls", "--type", "item"), []),
        (("--type", "item", "--type", "monster"), ["boat", "troll"]),
        (("--source", "sea.md"), ["boat"]),
        (("--state", "none"), ["cleric-8"]),
        (("--state", "none", "--state", "invalid"), ["boat", "cleric-8"]),
        (("--limit", "2"), ["boat", "cleric-7"]),
    ],
)
def test_filters(run: Run, args: tuple[str, ...], ids: list[str]) -> None:
    assert [row["id"] for row in run.json("list", *args)["rows"]] == ids


def test_a_limit_says_what_it_leaves_out(run: Run) -> None:
    assert run("list", "--limit", "1").endswith("small: 5 of 5 chunks, the first 1 shown\n")
    assert run("list", "--text", "nothing") == "small: 0 of 5 chunks\n"


def test_only_what_the_user_may_see_is_listed_and_counted(run: Run) -> None:
    assert "secret" not in run("list")
    assert run.err == ""
    assert "secret" in run("list", "--level", "4")
    assert run.err == ""


def test_changed_since_the_last_export(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(shutil.copytree(run.folder, tmp_path / "ws"), run.capsys)
    line = '{"id": "troll", "query_must": {"contain": "troll"}}\n'
    (tmp_path / "rules.jsonl").write_text(line)
    run("import", str(tmp_path / "rules.jsonl"), "--yes")
    (row,) = run.json("list", "--state", "changed")["rows"]
    assert (row["id"], row["state"], row["changed"]) == ("troll", "valid", True)
    run("export", "--out", str(tmp_path / "out.jsonl"), "--level", "4")
    assert run.json("list", "--state", "changed")["rows"] == []
    run("undo")
    with monkeypatch.context() as patch:
        # What only a terminal showed is no file.
        patch.setattr(sys.stdout, "isatty", lambda: True)
        run("export", "--level", "4")
    assert run.json("list", "--state", "changed")["found"] == 1
    run("export", "--level", "4")
    assert run.json("list", "--state", "changed")["rows"] == []


def test_words_of_every_question_are_questioned_as_by_lint(run: Run, tmp_path: Path) -> None:
    run = Run(shutil.copytree(run.folder, tmp_path / "ws"), run.capsys)
    with open_for(run.folder, "test") as bench:
        questions = {str(number): f"Is troll {number} at home?" for number in range(20)}
        bench.labels.put_set("small", "trolls", questions)
    (row,) = run.json("list", "--type", "monster")["rows"]
    assert (row["id"], row["state"]) == ("troll", "warning")
    findings = run.json("check", code=1)["findings"]
    assert (["troll"], "everywhere") in [(each["chunk_ids"], each["kind"]) for each in findings]


def test_a_state_that_there_is_not(run: Run) -> None:
    run("list", "--state", "draft", code=2)
    assert (
        "--state 'draft' is not a state. Use one of invalid, warning, none, note, valid, changed."
        in run.err
    )


def test_an_empty_collection(run: Run) -> None:
    assert run("list", collection="empty") == "empty: 0 of 0 chunks\n"
