"""A whole workspace copied to another place, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import OneVector

from ragfilter.errors import InputError
from ragfilter.ingest.records import Record
from ragfilter.model import Chunk
from ragfilter.protocols import Progress
from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.settings import config
from ragfilter.stores.index import index
from ragfilter.stores.manage import CopiedTable, copy_workspace
from ragfilter.stores.qdrant import QdrantPlace
from ragfilter.stores.workspace import Workspace
from ragfilter.testing import CHUNKS, QUERY

RULE = '{"contain":"x"}'


@pytest.fixture(params=["chroma", "qdrant"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workspace]:
    """A workspace with a collection, one rule of which was edited."""
    server = QdrantPlace(str(tmp_path / "qdrant")) if request.param == "qdrant" else None
    with Workspace.open(tmp_path / "folder", server=server) as workspace:
        records = [Record(chunk, "a line") for chunk in CHUNKS if chunk.clearance is not None]
        records.append(Record(Chunk("odd", clearance=None), "a line", clearance_as_given="top"))
        index(records, name="ours", workspace=workspace, embedder=OneVector({}, QUERY))
        journal = Journal(workspace.database_url)
        store = workspace.versioned_store().collection("ours")
        edits.save(store, journal, chunk_id="c01", rule=RULE, expected=None, who="a")
        journal.close()
        config.save(workspace.files, "strict", "[cutoff]\nmax_results = 3\n")
        yield workspace


@pytest.fixture
def database(address: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "passing", address=address) as workspace:
        yield workspace


def copied(source: Workspace, target: Workspace) -> dict[str, CopiedTable]:
    return {each.name: each for each in copy_workspace(source, target, lambda name: None)}


def test_a_folder_moves_into_a_database_and_back(folder: Workspace, database: Workspace, tmp_path: Path) -> None:
    there = copied(folder, database)
    count = folder.versioned_store().collection("ours").count()
    assert there["ours"].count == there["ours"].new == count
    assert there["rule_edits"].count == 1
    with Workspace.open(tmp_path / "back") as back:
        assert copied(database, back) == there
        assert config.find_saved(back.files, "strict").read_text() == "[cutoff]\nmax_results = 3\n"
        chunks = back.versioned_store().collection("ours").chunks(["c01", "odd"])
    assert (chunks["c01"].rule, chunks["odd"].clearance) == (RULE, None)
    # The next edit has a number of its own.
    journal, collection = Journal(database.database_url), database.store().collection("ours")
    edits.save(collection, journal, chunk_id="c01", rule=None, expected=RULE, who="b")
    assert len(journal.history("ours")) == 2
    journal.close()


def test_a_copy_goes_on_and_what_is_there_stays(folder: Workspace, database: Workspace) -> None:
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
    server = QdrantPlace("http://127.0.0.1:6333")
    with (
        Workspace.open(tmp_path / "one", server=server) as one,
        Workspace.open(tmp_path / "two", server=server) as two,
        pytest.raises(InputError, match="in the same place"),
    ):
        copied(one, two)
