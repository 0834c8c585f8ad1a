"""Qdrant as the store of a workspace: indexing, edits, renaming, and failure messages."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from stores import qdrant
from test_chroma_server import free_port
from test_postgres import Counting, records

from ragfilter.cli.program import main
from ragfilter.errors import CollectionMissing, StoreError, StoreUnavailable
from ragfilter.model import Chunk, User
from ragfilter.protocols import Where
from ragfilter.settings.deployment import read_deployment
from ragfilter.stores import manage
from ragfilter.stores.copies import StoredRow
from ragfilter.stores.indexer import index
from ragfilter.stores.workspace_files import Workspace
from ragfilter.testing import QUERY
from ragfilter.workbench import open_files_and_store


def test_a_workspace_keeps_its_vectors_in_a_folder_of_qdrant(tmp_path: Path) -> None:
    place, embedder = qdrant(str(tmp_path / "qdrant")), Counting()
    with Workspace.open(tmp_path / "ws", server=place) as workspace:
        index(records(5), name="notes", workspace=workspace, embedder=embedder)
        notes = workspace.versioned_store().collection("notes")
        assert (notes.count(), notes.incomplete, list(notes.entries())[:2]) == (5, "", ["c000", "c001"])
        notes.set_rules({"c001": "{}"})
        more = [*records(1, clearance=3), *records(6)[1:]]
        report = index(more, name="notes", workspace=workspace, embedder=embedder)
        assert (report.embedded, report.written, report.total) == (1, 2, 6)
        manage.rename(workspace, "notes", "renamed")
    with Workspace.open(tmp_path / "ws", server=place) as workspace:
        (info,) = workspace.versioned_store().collections()
        assert (info.name, info.count, info.ours, info.complete) == ("renamed", 6, True, True)
        renamed = workspace.versioned_store().collection("renamed")
        found = renamed.nearest(QUERY, 9, where=Where(User(2)))
        assert [i for i, _ in found] == [f"c00{i}" for i in range(1, 6)]
        manage.delete(workspace, "renamed")
        assert workspace.versioned_store().collections() == ()
        with pytest.raises(CollectionMissing):
            renamed.count()
    assert not list((tmp_path / "ws").glob("chroma*"))


@pytest.mark.model
def test_a_variable_names_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, source = str(tmp_path / "qdrant"), tmp_path / "notes.jsonl"
    source.write_text('{"id": "c1", "text": "Trolls fear fire."}')
    for name, value in (("WORKSPACE", str(tmp_path / "ws")), ("QDRANT_URL", place), ("QDRANT_KEY", "hush")):
        monkeypatch.setenv(f"RAGFILTER_{name}", value)
    assert main(["index", str(source), "-c", "notes"]) == main(["query", "trolls", "-c", "notes"]) == 0
    with open_files_and_store(read_deployment(), "copy") as workspace:
        assert workspace.server == qdrant(place, "hush")
        assert workspace.store().collection("notes").count() == 1


def test_a_collection_of_others_is_neither_listed_nor_replaced() -> None:
    store = qdrant(":memory:").open()
    with store.asking() as client:
        client.create_collection("theirs", {})
    assert store.collections() == ()
    with pytest.raises(StoreError, match="not made by ragfilter"):
        store.recreate("theirs", embedder="given")
    store.close()


def test_a_collection_is_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragfilter.stores.qdrant.PAGE", 7)
    store = qdrant(":memory:").open()
    chunks = [Chunk(f"c{i:02d}") for i in range(30)]
    made = store.create("notes", embedder="given")
    made.write([StoredRow(chunk, np.eye(30, dtype=np.float32)[i]) for i, chunk in enumerate(chunks)])
    assert list(made.chunks([c.id for c in chunks]).values()) == chunks
    assert list(made.entries()) == [c.id for c in chunks]
    assert (made.vectors(["c03", "c29"]) == np.eye(30)[[3, 29]]).all()
    assert len(made.nearest(np.eye(30)[0], 10**9)) == 30
    store.close()


def test_a_dead_server_is_told_with_a_remedy() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    store = qdrant(url).open()
    with pytest.raises(StoreUnavailable, match=url) as error:
        store.collections()
    assert error.value.remedy
    store.close()


def test_a_folder_that_is_open_elsewhere_is_told(tmp_path: Path) -> None:
    store = qdrant(str(tmp_path)).open()
    with pytest.raises(StoreError, match="already accessed"):
        qdrant(str(tmp_path)).open()
    store.close()


def test_what_else_answers_at_the_address_is_no_missing_collection() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            with pytest.raises(StoreError) as error:
                qdrant(f"http://127.0.0.1:{other.server_port}").open().collections()
        finally:
            other.shutdown()
    assert not isinstance(error.value, CollectionMissing)
    assert "Check the address" in error.value.remedy
