"""Collections are renamed, exported and deleted with everything that belongs to them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragfilter.cli.program import main
from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.indexing.order import Order, carry_out
from ragfilter.library.workspace import open_workspace
from ragfilter.rules import edits
from ragfilter.stores import manage
from ragfilter.stores.label_book import quotation_of
from ragfilter.stores.manage import export
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model
RECORDS: list[dict[str, Any]] = [
    {
        "id": "a",
        "text": "Trolls fear fire.",
        "title": "Troll",
        "page": 3,
        "refs": ["b", "x"],
        "query_must": {"contain": "troll"},
        "own": {"deep": [1]},
    },
    {"id": "b", "text": "Hush.", "clearance": 4, "department": "ops"},
    {"id": "c", "text": "Odd.", "clearance": "abc", "query_must": "{broken"},
    {"id": "d", "text": "Blank.", "clearance": " "},
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("source") / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    return path


@pytest.fixture
def bench(tmp_path: Path, source: Path) -> Iterator[Workbench]:
    with open_workspace(tmp_path / "ws") as opened:
        carry_out(Order("mine", str(source)), opened)
        yield opened


def edit(bench: Workbench) -> None:
    edits.save(
        bench.collection("mine"),
        bench.journal,
        chunk_id="a",
        who="me",
        rule='{"contain":"fire"}',
        expected='{"contain":"troll"}',
    )


def test_an_export_indexes_back_exactly(bench: Workbench, tmp_path: Path) -> None:
    edit(bench)
    path = tmp_path / "out.jsonl"
    path.write_text("".join(export(bench.workspace, bench.collection("mine"))))
    report = carry_out(Order("again", str(path)), bench).report
    assert (report.total, len(report.warnings)) == (4, 3)
    ids = ["a", "b", "c", "d"]
    there = bench.collection("mine").chunks(ids)
    assert bench.collection("again").chunks(ids) == there
    assert there["a"].rule == '{"contain":"fire"}'
    assert "".join(export(bench.workspace, bench.collection("again"))) == path.read_text()


def test_a_renamed_collection_takes_all_along(bench: Workbench, source: Path) -> None:
    edit(bench)
    manage.rename(bench.workspace, "mine", "yours")
    assert list(bench) == ["yours"]
    assert [edit.chunk_id for edit in bench.journal.history("yours")] == ["a"]
    assert bench.journal.history("mine") == ()
    report = carry_out(Order("yours", str(source)), bench).report
    assert (report.unchanged, report.embedded, report.written) == (4, 0, 0)
    assert bench.collection("yours").rule("a") == '{"contain":"fire"}'
    carry_out(Order("yours"), bench)
    assert bench.collection("yours").rule("a") == '{"contain":"fire"}'
    with pytest.raises(InputError, match="cannot be the name"):
        manage.rename(bench.workspace, "yours", "no good")
    with pytest.raises(CollectionMissing):
        manage.rename(bench.workspace, "mine", "other")
    assert not bench.workspace.contents.path("other").exists()
    bench.workspace.contents.path("other").mkdir()
    with pytest.raises(StoreError, match=r"copy .*yours\.parquet cannot be renamed"):
        manage.rename(bench.workspace, "yours", "other")
    assert list(bench) == ["yours"]


def test_a_deleted_collection_leaves_nothing(bench: Workbench, source: Path) -> None:
    edit(bench)
    chunk = bench.collection("mine").chunks(["a"])["a"]
    bench.labels.label("mine", "fire?", ["a"], 2, who="me", quotation=quotation_of(chunk))
    manage.delete(bench.workspace, "mine")
    with closing(sqlite3.connect(bench.workspace.path / "ragfilter.db")) as database:
        assert database.execute("SELECT count(*) FROM label_places").fetchone() == (0,)
    assert list(bench) == []
    assert [p.name for p in bench.workspace.copies_dir.iterdir()] == []
    carry_out(Order("mine", str(source)), bench)
    assert bench.collection("mine").rule("a") == '{"contain":"troll"}'
    with pytest.raises(CollectionMissing):
        manage.delete(bench.workspace, "nothing")


def test_what_others_made_is_neither_renamed_nor_deleted(bench: Workbench) -> None:
    raw = bench.workspace.store().client.create_collection("theirs", embedding_function=None)
    raw.add(ids=["a"], embeddings=[[1.0, 0.0]])
    for change in (
        lambda: manage.delete(bench.workspace, "theirs"),
        lambda: manage.rename(bench.workspace, "theirs", "mine2"),
        lambda: manage.rename(bench.workspace, "mine", "theirs"),
    ):
        with pytest.raises((StoreError, InputError)):
            change()
    assert sorted(bench) == ["mine", "theirs"]
    assert bench.workspace.contents.path("mine").exists()


def test_the_command_line_does_it_all(tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data-dir", str(tmp_path / "ws")]
    assert main(["index", str(source), "-c", "mine", *where]) == 0
    assert main(["collections", *where]) == 0
    assert "mine" in capsys.readouterr().out
    assert main(["collections", "export", "mine", *where]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(x)["id"] for x in out.splitlines()] == ["a"]
    # Nor does it reveal how many hidden chunks it lacks.
    assert "chunk" not in err
    every = ["--set", "clearance.enabled=false", "--out", str(tmp_path / "o")]
    assert main(["collections", "export", "mine", *every, *where]) == 0
    assert len((tmp_path / "o").read_text().splitlines()) == 4
    assert main(["collections", "delete", "mine", *where]) == 2
    told = capsys.readouterr().err
    assert "--yes mine" in told
    assert "`ragfilter labels export`" in told
    assert main(["collections", "delete", "mine", "--yes", "mine", *where]) == 0
    assert main(["collections", *where]) == 0
    assert "No collection yet" in capsys.readouterr().err
