"""`ragfilter rules suggest --families`: proposals to a file, and from there into the collection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rule_runs import GOOD, Run, make_workspace

from ragfilter.cli.access import open_for

CLERICS = "ac #"


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    make_workspace(tmp_path / "workspace")
    return Run(tmp_path / "workspace", capsys)


def test_proposals_are_written_and_imported_and_nothing_is_saved_unasked(
    run: Run, tmp_path: Path
) -> None:
    out = tmp_path / "drafts.jsonl"
    printed = run("suggest", "--families", "--out", str(out)).splitlines()
    assert printed[:2] == ["ac #: 3 chunks", "  ac 6; ac 7; ac 8"]
    assert printed[-2] == "small: 3 proposals for families: 1, with doubts: 0"
    assert (run.rule("cleric-6"), run.rule("cleric-7")) == (GOOD, None)
    drafts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [draft["value"] for draft in drafts] == ["ac 6", "ac 7", "ac 8"]
    run("import", str(out))
    assert '"ac 7"' in (run.rule("cleric-7") or "")
    run("suggest", "--families", "--out", str(out), code=2)
    assert "exists" in run.err


def test_json_holds_families_and_proposals(run: Run) -> None:
    made = run.json("suggest", "--families")
    ((family),) = made["families"]
    assert family["pattern"] == CLERICS
    assert [member["id"] for member in family["members"]] == ["cleric-6", "cleric-7", "cleric-8"]
    assert made["proposals"][0]["query_must"]["contain_one_of"][0][:2] == ["ac 6", "ac of 6"]


def test_without_a_family_nothing_is_proposed(run: Run) -> None:
    assert run.json("suggest", "--families", "--where", "type=item")["proposals"] == []


def test_spellings_come_from_the_questions_asked_too(run: Run) -> None:
    with open_for(run.folder, "test") as bench:
        bench.labels.remember("small", "does a cleric hit the 6th AC?")
    (first, *_) = run.json("suggest", "--families")["proposals"]
    assert "6th ac" in first["query_must"]["contain_one_of"][0]


def test_limit_is_of_the_selection(run: Run) -> None:
    # Two of one pattern are not a family.
    assert run.json("suggest", "--families", "--limit", "2")["proposals"] == []
    assert len(run.json("suggest", "--families", "--limit", "3")["proposals"]) == 3
