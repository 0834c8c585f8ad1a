"""A whole workspace copied to another place, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stores import OneVector, qdrant
from test_preferences import FULL, PLAIN
from test_runs import PLAN

from ragfilter.cli.program import main
from ragfilter.errors import InputError, StoreError
from ragfilter.ingest.records import Record
from ragfilter.model import Chunk
from ragfilter.protocols import Progress
from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.settings import config
from ragfilter.stores.indexer import index
from ragfilter.stores.label_book import LabelBook
from ragfilter.stores.manage import CopiedTable, EveryTable, copy_workspace
from ragfilter.stores.postgres.store import PgStore
from ragfilter.stores.preferences import PreferenceBook
from ragfilter.stores.run_store import Runs
from ragfilter.stores.workspace_files import Workspace
from ragfilter.testing import CHUNKS, QUERY

RULE = '{"contain":"x"}'


@pytest.fixture(params=["chroma", "qdrant"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with a collection, one rule of which was edited."""
    server = qdrant(str(tmp_path / "qdrant")) if request.param == "qdrant" else None
    with Workspace.open(tmp_path / "folder", server=server) as workspace:
        records = [Record(chunk, "a line") for chunk in CHUNKS if chunk.clearance is not None]
        records.append(Record(Chunk("odd", clearance=None), "a line", clearance_as_given="top"))
        index(records, name="ours", workspace=workspace, embedder=OneVector({}, QUERY))
        journal = Journal(workspace.database_url)
        store = workspace.versioned_store().collection("ours")
        edits.save(store, journal, chunk_id="c01", rule=RULE, expected=None, who="a")
        journal.close()
        url = workspace.database_url
        labels, runs = LabelBook(url), Runs(url)
        labels.put_set("ours", "mine", {"q": "Who?"})
        labels.label("ours", "Who?", ["c01", "c02"], 2, who="a")
        labels.record("ours", {"Who?": ["c01"]})
        PreferenceBook(url).record("ours", "Who?", FULL, PLAIN, "first", who="a")
        runs.keep(runs.begin(PLAN, who="a").id, "q", {"id": "q"})
        config.save(workspace.files, "strict", "[cutoff]\nmax_results = 3\n")
        yield workspace


@pytest.fixture
def database(address: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "passing", address=address) as workspace:
        yield workspace


def copied(source: Workspace, target: Workspace) -> dict[str, CopiedTable]:
    return {each.name: each for each in copy_workspace(source, target, lambda name: None)}


def test_a_folder_moves_into_a_database_and_back(
    folder: Workspace, database: Workspace, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = copied(folder, database)
    count = folder.versioned_store().collection("ours").count()
    single = ("rule_edits", "query_sets", "recorded_hits", "preferences", "runs", "run_records", "files")
    copies = {each.name: each.new for each in there.values() if each.count}
    assert copies == {"ours": count, "labels": 2, **dict.fromkeys(single, 1)}
    assert main(["workspace", "copy", address, str(tmp_path / "back"), "--json"]) == 0
    assert [CopiedTable(**each) for each in json.loads(capsys.readouterr().out)] == [*there.values()]
    with Workspace.open(tmp_path / "back") as back:
        assert config.find_saved(back.files, "strict").read_text() == "[cutoff]\nmax_results = 3\n"
        chunks = back.versioned_store().collection("ours").chunks(["c01", "odd"])
    assert (chunks["c01"].rule, chunks["odd"].clearance) == (RULE, None)
    # The next edit has a number of its own.
    journal, collection = Journal(database.database_url), database.store().collection("ours")
    edits.save(collection, journal, chunk_id="c01", rule=None, expected=RULE, who="b")
    assert len(journal.history("ours")) == 2
    journal.close()


def test_a_copy_goes_on_and_what_is_there_stays(folder: Workspace, database: Workspace, tmp_path: Path) -> None:
    heard: list[str] = []

    def stop(name: str) -> Progress:
        heard.append(name)

        def tell(done: int, total: int) -> None:
            raise KeyboardInterrupt

        return tell

    with pytest.raises(KeyboardInterrupt):
        copy_workspace(folder, database, stop)
    assert heard == ["ours"]
    assert database.store().collections() == ()
    assert copied(folder, database)["ours"].new > 0
    assert {each.new for each in copied(folder, database).values()} == {0}
    with Workspace.open(tmp_path / "back", server=folder.server and qdrant(str(tmp_path / "other"))) as back:
        with pytest.raises(KeyboardInterrupt):
            copy_workspace(database, back, stop)
        assert back.store().collection("ours").incomplete
        assert copied(database, back)["ours"].new > 0
        assert {each.new for each in copied(database, back).values()} == {0}


@pytest.mark.parametrize(
    ("holder", "name", "what"), [(PgStore, "put", "the collection ours"), (EveryTable, "add", "the table rule_edits")]
)
def test_a_copy_that_lacks_a_row_is_told(
    folder: Workspace, database: Workspace, monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, what: str
) -> None:
    add = getattr(holder, name)
    monkeypatch.setattr(holder, name, lambda *a, **more: a[-1][1:] and add(*a[:-1], a[-1][1:], **more))
    with pytest.raises(StoreError, match=f"The copy of {what} differs"):
        copied(folder, database)


def test_nothing_else_is_ever_replaced(folder: Workspace, database: Workspace) -> None:
    copied(folder, database)
    database.store().collection("ours").set_rules({"c02": RULE})
    with pytest.raises(InputError, match="another collection"):
        copied(folder, database)
    assert database.store().collection("ours").rule("c02") == RULE
    journal = Journal(database.database_url)
    collection = database.store().collection("ours")
    edits.save(collection, journal, chunk_id="c03", rule=RULE, expected=None, who="b")
    journal.close()
    with pytest.raises(InputError, match="other rows in its table rule_edits"):
        copied(folder, database)
    with pytest.raises(InputError, match="the same workspace"):
        copied(database, database)


def test_two_folders_on_one_server_are_refused(tmp_path: Path) -> None:
    server = qdrant("http://127.0.0.1:6333")
    with (
        Workspace.open(tmp_path / "one", server=server) as one,
        Workspace.open(tmp_path / "two", server=server) as two,
        pytest.raises(InputError, match="in the same place"),
    ):
        copied(one, two)
