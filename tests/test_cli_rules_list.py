"""`ragfilter rules list`, `test` and `suggest --families`: rules listed, tested and proposed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import write
from rule_runs import GOOD, SPREAD, Run
from rule_runs import run as run
from rule_runs import small as small

from ragfilter.cli.options import open_for

UNREAD = {"boat": "{", "cleric-7": SPREAD}


# -- list ------------------------------------------------------------------------------------------


def test_what_needs_attention_most_comes_first(run: Run, snapshot: Any) -> None:
    run.store(UNREAD)
    assert run("list") == snapshot
    assert run.json("list", "--where", "state=valid", "--where", "type=special") == snapshot
    assert run("list", "--limit", "1").endswith("small: 5 of 5 chunks, the first 1 shown\n")
    assert run("list", "--where", "text=nothing") == snapshot
    assert "secret" in run("list", "--level", "4")
    assert run.err == ""
    assert run("list", collection="empty") == snapshot


def test_where_selects(run: Run) -> None:
    for where, ids in [
        ("type=special rule=none id=cleric*", ["cleric-8"]),
        ("title=*troll*", ["troll"]),
        ("id=troll id=boat", ["boat", "troll"]),
        ("id=troll id=boat source=SEA.md", ["boat"]),
        ("state=none", ["cleric-8"]),
        ("text=matrix,ac", ["cleric-7", "cleric-6", "cleric-8"]),
        ("state=valid text=troll text=sea.md", ["troll"]),
    ]:
        run.store(UNREAD)
        args = (part for text in where.split() for part in ("--where", text.replace(",", " ")))
        assert [row["id"] for row in run.json("list", *args)["rows"]] == ids


# -- test ------------------------------------------------------------------------------------------

MET = {"question": "cleric against armor", "stay": ["cleric-6", "boat"], "go": ["troll"]}
BROKEN = {"question": "a troll", "stay": ["cleric-6", "nobody"], "go": ["boat", "troll"]}


def test_what_is_broken_is_told_by_line_with_the_reason(run: Run, tmp_path: Path, snapshot: Any) -> None:
    assert run("test", write(tmp_path / "e.jsonl", MET, "")) == snapshot
    assert run.err == ""
    file = write(tmp_path / "e.jsonl", MET, "", BROKEN)
    assert run("test", file, code=1) == snapshot
    assert run.json("test", file, code=1) == snapshot


def test_a_hidden_chunk_is_tested_like_one_that_does_not_exist(run: Run, tmp_path: Path) -> None:
    told = []
    for i in ("secret", "absent"):
        file = write(tmp_path / "e.jsonl", {"question": "boats", "stay": ["boat"], "go": [i]})
        told.append(run("test", file, code=1).replace(i, "ID") + run.err)
    assert told[0] == told[1]
    secret = write(tmp_path / "e.jsonl", {"question": "boats", "go": ["secret"]})
    assert "secret must go: no rule" in run("test", secret, "--level", "4", code=1)


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_an_exported_file_is_tested_without_a_workspace(run: Run, tmp_path: Path, ending: str) -> None:
    exported = tmp_path / f"rules.{ending}"
    run("export", "--out", str(exported))
    run.folder = tmp_path / "none"
    file = write(tmp_path / "e.jsonl", MET)
    assert run("test", file, "--rules", str(exported)).endswith("0 broken\n")
    assert not run.folder.exists()
    owls = write(tmp_path / "e.jsonl", {"question": "owl", "stay": ["troll"]})
    assert run("test", owls, "--rules", str(exported), code=1).endswith("1 broken\n")


def test_a_bad_line_is_named_by_number(run: Run, tmp_path: Path) -> None:
    for line, why in [
        ({"stay": ["boat"]}, "question: it is missing"),
        ({"question": "x", "keep": ["boat"]}, "keep: there is no such key"),
    ]:
        file = write(tmp_path / "e.jsonl", MET, line)
        assert run("test", file, code=2) == "", line
        assert f"{file}, line 2" in run.err
        assert why in run.err
        assert run.err.count("\n") == 1, line


# -- suggest --families ----------------------------------------------------------------------------


def test_proposals_are_written_and_imported_and_nothing_is_saved_unasked(
    run: Run, tmp_path: Path, snapshot: Any
) -> None:
    out = tmp_path / "drafts.jsonl"
    printed = run("suggest", "--families", "--out", str(out))
    assert printed.replace(str(out), "OUT") == snapshot
    assert run.rules("cleric-6", "cleric-7") == [GOOD, None]
    drafts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [draft["value"] for draft in drafts] == ["ac 6", "ac 7", "ac 8"]
    run("import", str(out))
    assert '"ac 7"' in (run.rule("cleric-7") or "")
    run("suggest", "--families", "--out", str(out), code=2)
    assert "exists" in run.err


def test_json_holds_families_and_proposals(run: Run) -> None:
    with open_for(run.folder, "test") as bench:
        bench.labels.remember("small", "does a cleric hit the 6th AC?")
    made = run.json("suggest", "--families")
    (family,) = made["families"]
    assert family["pattern"] == "ac #"
    assert [member["id"] for member in family["members"]] == ["cleric-6", "cleric-7", "cleric-8"]
    # Spellings come from the questions asked, too.
    spellings = made["proposals"][0]["query_must"]["contain_one_of"][0]
    assert {"ac 6", "ac of 6", "6th ac"} <= {*spellings}
    # Two of one pattern are not a family.
    for args, n in ((("--where", "type=item"), 0), (("--limit", "2"), 0), (("--limit", "3"), 3)):
        assert len(run.json("suggest", "--families", *args)["proposals"]) == n
