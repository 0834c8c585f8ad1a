"""Rules to and from CSV: an exact round trip, and bad rows that are reported."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from rule_runs import GOOD, OTHER, Run
from rule_runs import run as run
from rule_runs import small as small

from ragfilter.model import Chunk
from ragfilter.rules import rule_files

HEAD = "id,title,query_must"


def test_an_exported_file_comes_back_as_it_was(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "rules.csv"
    assert run("export", "--out", str(out)) == f"small: 2 rules written to {out}\n"
    assert out.read_bytes().startswith(b"\xef\xbb\xbfid,title,query_must")
    with out.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["query_must"]) for row in rows] == [("cleric-6", GOOD), ("troll", OTHER)]
    made = run.json("import", str(out))
    assert (made["changes"], made["unchanged"]) == ([], 2)
    edited = out.read_text("utf-8").replace("cleric-6", "cleric-7").replace("clerics", "prie\u0301sts")
    out.write_text(edited, encoding="utf-8")
    assert [c["chunk_id"] for c in run.json("import", str(out))["changes"]] == ["cleric-7"]
    assert run.rule("cleric-7") == '{"contain_one_of":[["cleric","prie\u0301sts"]]}'


def test_a_title_is_no_formula(tmp_path: Path) -> None:
    file = tmp_path / "rules.csv"
    title = '=HYPERLINK("http://evil.example")'
    file.write_text(rule_files.csv_text([Chunk("boat", "", title, rule=GOOD)]), encoding="utf-8")
    (row,) = csv.DictReader(file.read_text("utf-8-sig").splitlines())
    assert row["title"] == f"'{title}"
    assert rule_files.plan(file, {"boat": GOOD}).unchanged == 1


def test_an_id_with_line_ends_comes_back_as_it_was(tmp_path: Path) -> None:
    for chunk_id in ["h\ri", "h\ni", "h\x1b[2Ji", '"h";\ti, j']:
        file = tmp_path / "rules.csv"
        chunks = [Chunk(i, "", "two\rlines", rule=GOOD) for i in (chunk_id, "boat")]
        file.write_text(rule_files.csv_text(chunks), encoding="utf-8", newline="")
        stored: dict[str, str | None] = {chunk_id: GOOD, "boat": OTHER}
        plan = rule_files.plan(file, stored)
        assert (plan.unchanged, plan.refusals) == (1, ()), chunk_id
        assert [change.chunk_id for change in plan.changes] == ["boat"]


@pytest.mark.parametrize("end", ["jsonl", "csv"])
@pytest.mark.parametrize("text", ["null", " ", '"null"', '"', '{"contains":1}', " {", "[]", "sep=;", "a\nb", "\u2028"])
def test_a_rule_that_cannot_be_read_comes_back_as_it_was(tmp_path: Path, end: str, text: str) -> None:
    file = tmp_path / f"rules.{end}"
    chunks = [Chunk("boat", rule=text)]
    made = rule_files.csv_text(chunks) if end == "csv" else "".join(rule_files.lines(chunks))
    file.write_text(made, encoding="utf-8", newline="")
    plan = rule_files.plan(file, {"boat": text})
    assert (plan.changes, plan.refusals, plan.unchanged) == ((), (), 1)
    assert rule_files.read(file)[0]["boat"].rule == text


def imported(run: Run, file: Path, content: str | bytes, code: int = 1) -> str:
    """The output of the import of a file."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return run("import", str(file), code=code)


def test_rows_that_cannot_be_used_are_named_and_the_rest_is_saved(run: Run, tmp_path: Path, snapshot: Any) -> None:
    spreadsheet = (
        "\ufeffid;title;query_must\r\n"
        'boat;"two\r\nlines";"{""contain"":""boat""}"\r\n'
        "troll;;null\r\n;;{}\r\ncleric-6;;\r\ncleric-7;;{;more\r\ncleric-8;;{\r\n\r\n"
    )
    assert imported(run, tmp_path / "rules.CSV", spreadsheet) == snapshot
    assert run.rules("boat", "troll", "cleric-6") == ['{"contain":"boat"}', None, GOOD]
    # A refusal is one line, whatever the id contains.
    assert imported(run, tmp_path / "r.csv", HEAD + '\n"h\r\n\x1bi",,{}\n') == snapshot


def test_a_file_without_a_header_is_refused_whole(run: Run, tmp_path: Path) -> None:
    for text in ["id,rule\nboat,{}\n", ""]:
        imported(run, tmp_path / "rules.csv", text, code=2)
        assert "line 1: the header does not name" in run.err, text
        assert run.err.count("\n") == 1, text


@pytest.mark.parametrize("header", [b"sep=;\r\nID;Title;", b'\r\nID;"Title, or name, if any";'])
def test_the_forms_in_which_spreadsheets_write_a_header(run: Run, tmp_path: Path, header: bytes) -> None:
    rows = b'Query_Must\r\nboat;;"{""contain"":""boat""}"\r\nno;;{}\r\n'
    assert "refused: line 4 (no)" in imported(run, tmp_path / "rules.csv", header + rows)
    assert run.rule("boat") == '{"contain":"boat"}'
