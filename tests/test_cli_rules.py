"""`ragfilter rules …` on a real workspace, with a real HTTP server as the LLM. No embedding model
is loaded: the chunks are stored with made-up vectors."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import write
from rule_runs import ALL, GOOD, OTHER, SPREAD, Run
from rule_runs import llm as llm
from rule_runs import run as run
from rule_runs import small as small
from syrupy.assertion import SnapshotAssertion

from ragfilter.cli.options import open_for
from ragfilter.cli.program import main

# -- check -----------------------------------------------------------------------------------------


def fixed(run: Run, *args: str) -> dict[str, str | None]:
    return dict(run.json("check", "--apply", *args)["fixed"])


def test_findings_and_their_exit_codes(run: Run, snapshot: Any) -> None:
    assert run("check") == snapshot
    run.store({"cleric-7": SPREAD})
    assert run("check") == snapshot
    run("check", "--strict", code=1)
    assert run("check", "--strict", "--where", "id=troll").endswith("0 warnings, 0 notes\n")
    run.store({"boat": '{"contain_on_of": []}'})
    assert run("check", code=1) == snapshot
    assert run("check", "--kind", "spread").startswith("warning: cleric-7 ")
    assert run.json("check", "--where", "type=item", code=1) == snapshot
    assert run.json("check", "--where", "type=monster")["errors"] == 0
    run("check", "--kind", "draft", code=2)
    assert "--kind 'draft' is not a kind. Use one of unreadable, " in run.err


def test_rules_are_proposed_for_families_and_applied(run: Run, snapshot: Any) -> None:
    run.store({"cleric-6": None})
    assert run("check", "--kind", "family") == snapshot
    # Hidden chunks are not members of a family.
    assert "secret" not in run("check", "--kind", "family", "--apply", "--dry-run")
    assert list(fixed(run, "--kind", "family")) == ["cleric-6", "cleric-7", "cleric-8"]
    assert '"ac 7"' in (run.rule("cleric-7") or "")
    assert run.json("check", "--kind", "family")["findings"] == []


def test_check_of_a_file_needs_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: Any
) -> None:
    monkeypatch.setenv("RAGFILTER_DATA_DIR", str(tmp_path / "none"))
    failed = {"id": "b", "query_must": None, "error": "the LLM gave no answer"}
    drafted = {"id": "b", "query_must": {"contain": "b"}}
    for name, code, records in (
        (
            "rules",
            1,
            (
                {"id": "a", "title": "Clerics, druids and monks", "query_must": json.loads(SPREAD)},
                {"id": "b", "query_must": "{"},
                {"id": "c"},
            ),
        ),
        ("doubtful", 0, ({"id": "a", "query_must": json.loads(SPREAD)},)),
        ("broken", 1, ('{"id": "a", "id": "b"}', drafted, "no JSON", {"id": "b", "query_must": {"contain": "c"}})),
        ("resumed", 0, (failed, drafted, {"id": "b"}, failed)),
    ):
        file = write(tmp_path / f"{name}.jsonl", *records)
        assert main(["rules", "check", "--rules", file]) == code
        assert capsys.readouterr().out.replace(str(tmp_path), "") == snapshot(name=name)
    doubtful = str(tmp_path / "doubtful.jsonl")
    assert main(["rules", "check", "--rules", doubtful, "--strict"]) == 1
    assert main(["rules", "check", "--rules", doubtful, "--apply"]) == 2
    assert "--apply has no effect beside --rules." in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


# -- export and import -----------------------------------------------------------------------------

THREE = [{"id": i, "query_must": json.loads(GOOD)} for i in ("cleric-7", "troll", "boat")]


def test_export_and_import_again(run: Run, tmp_path: Path, snapshot: Any) -> None:
    out = tmp_path / "rules.jsonl"
    assert run("export", "--out", str(out)) == f"small: 2 rules written to {out}\n"
    assert run("export") == out.read_text(encoding="utf-8") == snapshot
    assert run("import", str(out)).startswith("small: 0 rules saved, 2 unchanged")
    run.store({"troll": None})
    assert run("import", str(out)).startswith("small: 1 rule saved, 1 unchanged")
    assert run.rule("troll") == OTHER


def test_an_import_touches_nothing_that_the_user_may_not_see(run: Run, tmp_path: Path) -> None:
    run.store({"secret": GOOD})
    seen = tmp_path / "seen.jsonl"
    run("export", "--out", str(seen))
    assert run.json("import", str(seen))["changes"] == []
    assert run.err == ""
    secret = write(tmp_path / "secret.jsonl", {"id": "secret", "query_must": {"contain": "x"}})
    absent = write(tmp_path / "absent.jsonl", {"id": "absent", "query_must": {"contain": "x"}})
    refused = [run.json("import", file, code=1)["refusals"] for file in (secret, absent)]
    assert refused[0][0] == refused[1][0] | {"chunk_id": "secret"}
    assert run.rule("secret") == GOOD


def test_only_a_file_that_lacks_no_rule_counts_as_an_export(run: Run, tmp_path: Path) -> None:
    hidden = write(tmp_path / "in.jsonl", {"id": "secret", "query_must": {"contain": "x"}})
    run("import", hidden, *ALL)
    for n, (args, changed) in enumerate([((), {"secret": None}), (ALL, {})]):
        run("export", "--out", str(tmp_path / f"{n}.jsonl"), *args)
        with open_for(run.folder, "test") as bench:
            assert bench.journal.edited_since_export("small") == changed


def test_import_names_what_it_refuses_and_saves_the_rest(run: Run, tmp_path: Path, snapshot: Any) -> None:
    file = write(
        tmp_path / "in.jsonl",
        {"id": "cleric-7", "query_must": {"contain_one_of": [["cleric"]]}},
        {"_id": "cleric-8", "query_must": '{"contain": "cleric"}'},
        {"id": "boat", "query_must": {"contain_one_of": [[]]}},
        {"id": "ghost", "query_must": {"contain": "ghost"}},
        "not json",
        {"query_must": {}},
        {"id": "secret"},
        {"id": "secret", "query_must": None, "error": "The endpoint failed."},
        {"id": "troll", "query_must": None},
        {"id": "cleric-6", "query_must": json.loads(GOOD)},
    )
    assert run("import", file, code=1) == snapshot
    assert run.rules("cleric-7", "cleric-8", "troll", "boat") == [
        '{"contain_one_of":[["cleric"]]}',
        '{"contain":"cleric"}',
        None,
        None,
    ]
    assert run("undo", "troll").endswith(f"the rule of troll is {OTHER}\n")
    assert run.rule("troll") == OTHER


def test_an_undo_is_tried_first_and_refused_if_a_rule_was_changed_since(
    run: Run, tmp_path: Path, snapshot: Any
) -> None:
    run("import", write(tmp_path / "in.jsonl", *THREE))
    assert run("undo", "--edit", "1", "--dry-run") == snapshot
    assert run.rule("boat") == GOOD
    run("bulk", "--where", "id=troll", "--set-rule", '{"contain":"troll"}')
    run("undo", "--edit", "1", code=2)
    assert run.err == snapshot


def break_database(folder: Path, when: str) -> closing[sqlite3.Connection]:
    """Lets the journal's database fail."""
    database = sqlite3.connect(folder / "ragfilter.db")
    fails = "begin select abs(-9223372036854775808); end"
    database.execute(f"create trigger fails before {when} {fails}")
    return closing(database)


def test_an_import_that_fails_changes_nothing(run: Run, tmp_path: Path) -> None:
    run("history")
    with break_database(run.folder, "insert on rule_edits when new.chunk_id = 'troll'"):
        assert run("import", write(tmp_path / "in.jsonl", *THREE), code=2) == ""
    told = "(integer overflow). Nothing was saved."
    assert told in run.err
    assert run.rules("cleric-7", "troll", "boat") == [None, OTHER, None]
    assert run.json("history") == []


def test_an_import_that_cannot_be_closed_is_finished_at_the_next_start(run: Run, tmp_path: Path) -> None:
    run("history")
    with break_database(run.folder, "update on rule_edits") as database:
        assert run("import", write(tmp_path / "in.jsonl", THREE[2]), code=2) == ""
        assert "finished or rolled back at the next start" in run.err
        database.execute("drop trigger fails")
    (edit,) = run.json("history")
    assert (edit["state"], run.rule("boat")) == ("done", GOOD)


def test_a_draft_with_doubts_is_held_back_until_they_are_accepted(run: Run, tmp_path: Path, snapshot: Any) -> None:
    file = write(
        tmp_path / "in.jsonl",
        {"id": "cleric-6", "query_must": json.loads(GOOD), "remarks": ["stored already"]},
        {"id": "cleric-7", "query_must": json.loads(SPREAD), "remarks": ["one group", "too few"]},
        {"id": "boat", "query_must": {"contain": "boat"}, "remarks": []},
        {"id": "troll", "query_must": None, "remarks": ["no matter: it is removed"]},
    )
    assert run("import", file, "--dry-run", code=1) == snapshot
    assert run("import", file, code=1) == snapshot
    assert run.rules("cleric-7", "boat") == [None, '{"contain":"boat"}']
    (held,) = run.json("import", file, code=1)["held"]
    assert (held["chunk_id"], held["doubts"]) == ("cleric-7", ["one group", "too few"])
    assert run("import", file, "--with-doubts") == snapshot
    assert run.rule("cleric-7") == SPREAD


# -- history, undo, redo ---------------------------------------------------------------------------


def test_history_undo_and_redo(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    assert run("history") == ""
    assert run.err == snapshot
    for kind in ("undo", "redo"):
        run(kind, code=2)
        assert f"There is nothing to {kind}." in run.err
    monkeypatch.setenv("RAGFILTER_USER", "ada")
    run("import", write(tmp_path / "in.jsonl", THREE[2]))
    assert run("undo") == snapshot
    assert run.rule("boat") is None
    (redone,) = run.json("redo", "boat")["edits"]
    assert redone["kind"] == "redo"
    assert run.rule("boat") == GOOD
    head, *rows = run("history").splitlines()
    assert head.split() == ["edit", "when", "who", "kind", "state", "chunk", "rule"]
    assert [row.split()[3:6] for row in rows] == [["ada", kind, "done"] for kind in ("redo", "undo", "edit")]
    edits = run.json("history", "boat", "--limit", "1")
    assert [(edit["kind"], edit["after"]) for edit in edits] == [("redo", GOOD)]
    assert run.json("history", "troll") == []
