"""Indexing: unchanged chunks are not touched, and an interruption loses nothing."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragfilter.errors import InputError, ModelError, StoreError, WorkspaceLocked
from ragfilter.ingest.records import Record, to_record
from ragfilter.model import Chunk
from ragfilter.protocols import Vectors
from ragfilter.stores import indexer as indexing
from ragfilter.stores.chroma import ChromaCollection
from ragfilter.stores.indexer import index, rebuild
from ragfilter.stores.opening import Stores
from ragfilter.stores.workspace_files import Workspace


class FakeEmbedder:
    """A unit vector derived from each text. Counts the texts, and fails after `budget`."""

    def __init__(self, name: str = "fake", budget: int = 10**9) -> None:
        self.name = name
        self.budget = budget
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), 4), dtype=np.float32)
        for n, text in enumerate(texts):
            if len(self.embedded) >= self.budget:
                raise ModelError("The power went out.", remedy="Try again.")
            self.embedded.append(text)
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
            vector = np.random.default_rng(seed).normal(size=4)
            vectors[n] = vector / np.linalg.norm(vector)
        return vectors


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "ws") as workspace:
        yield workspace


def records(*rows: dict[str, Any]) -> list[Record]:
    return [to_record(row, place=f"x.jsonl, line {n}") for n, row in enumerate(rows, start=1)]


def some(count: int, text: str = "text", **fields: Any) -> list[Record]:
    return records(*({"id": f"c{i}", "text": f"{text} {i}", **fields} for i in range(count)))


def stored(workspace: Workspace, name: str = "demo") -> dict[str, Chunk]:
    collection = workspace.store().collection(name)
    return collection.chunks(list(collection.catalogue()))


def expected(given: Iterable[Record]) -> dict[str, Chunk]:
    return {record.chunk.id: record.chunk for record in given}


FULL = {
    "id": "full",
    "text": "The text.",
    "title": "Title",
    "type": "special",
    "source": "book.md",
    "page": 7,
    "refs": ["c0"],
    "clearance": 2,
    "department": "ops",
    "query_must": {"contain_one_of": [["x", "y"]]},
}


def test_records_become_a_complete_collection_with_a_copy(workspace: Workspace) -> None:
    given = [*records(FULL), *some(3)]
    embedder = FakeEmbedder()
    report = index(given, name="demo", workspace=workspace, embedder=embedder)
    assert (report.total, report.added, report.embedded, report.written) == (4, 4, 4, 4)
    assert stored(workspace) == expected(given)
    assert "Title\nThe text." in embedder.embedded
    (info,) = workspace.store().collections()
    assert (info.count, info.space, info.embedder, info.complete) == (4, "l2", "fake", True)
    copy = workspace.contents.read("demo")
    assert {row.chunk.id: row.chunk for row in copy} == expected(given)
    query = embedder.embed(["text 1"])[0]
    nearest = workspace.store().collection("demo").nearest(query, 1)
    assert nearest == [("c1", pytest.approx(0, abs=1e-6))]


def test_the_second_time_nothing_is_done(workspace: Workspace) -> None:
    index(some(5), name="demo", workspace=workspace, embedder=FakeEmbedder())
    version = workspace.store().collection("demo").version
    idle = FakeEmbedder(budget=0)
    report = index(some(5), name="demo", workspace=workspace, embedder=idle)
    assert (report.total, report.unchanged, report.written) == (5, 5, 0)
    assert workspace.store().collection("demo").version == version


def test_only_what_is_new_or_changed_is_embedded_and_written(workspace: Workspace) -> None:
    index(some(4), name="demo", workspace=workspace, embedder=FakeEmbedder())
    embedder = FakeEmbedder()
    given = records(
        {"id": "c1", "text": "another text"},
        {"id": "c2", "text": "text 2", "clearance": 3},
        {"id": "c3", "text": "text 3"},
        {"id": "new", "text": "text 0"},
    )
    report = index(given, name="demo", workspace=workspace, embedder=embedder)
    assert embedder.embedded == ["another text"]
    assert (report.added, report.changed, report.unchanged) == (1, 2, 1)
    assert (report.total, report.not_in_source, report.written) == (5, 1, 3)
    assert stored(workspace) == {"c0": Chunk("c0", "text 0"), **expected(given)}


def test_reset_removes_what_the_source_no_longer_has(workspace: Workspace) -> None:
    index(some(4), name="demo", workspace=workspace, embedder=FakeEmbedder())
    given = some(2)
    embedder = FakeEmbedder("other")
    report = index(given, name="demo", workspace=workspace, embedder=embedder, reset=True)
    assert (report.total, report.added, report.embedded) == (2, 2, 2)
    assert stored(workspace) == expected(given)
    assert workspace.store().collection("demo").embedder == "other"
    assert len(workspace.contents.read("demo")) == 2


# --- bad input changes nothing


def test_an_id_used_twice_is_told_with_both_places(workspace: Workspace) -> None:
    twice = records({"id": "a", "text": "t"}, {"id": "b", "text": "t"}, {"id": "a", "text": "u"})
    with pytest.raises(InputError, match=r"line 3: the id 'a' was already used in x.jsonl, line 1"):
        index(twice, name="demo", workspace=workspace, embedder=FakeEmbedder())
    assert workspace.store().collections() == ()


def test_a_bad_name_is_refused_before_the_source_is_read(workspace: Workspace) -> None:
    def unread() -> Iterator[Record]:
        pytest.fail("read the source")
        yield

    with pytest.raises(InputError, match="name of a collection"):
        index(unread(), name="a b", workspace=workspace, embedder=FakeEmbedder())


def test_another_model_needs_a_reset(workspace: Workspace) -> None:
    index(some(3), name="demo", workspace=workspace, embedder=FakeEmbedder())
    with pytest.raises(StoreError, match="fake") as error:
        index(some(4), name="demo", workspace=workspace, embedder=FakeEmbedder("other"))
    assert error.value.action == "replace"
    assert len(stored(workspace)) == 3


def test_the_model_of_a_collection_that_the_store_has_lost_is_known(workspace: Workspace) -> None:
    index(some(3), name="demo", workspace=workspace, embedder=FakeEmbedder("mine"))
    workspace.store().client.delete_collection("demo")
    stores = Stores(workspace)
    assert (stores.embedder("demo"), stores.embedder("another")) == ("mine", "")


def test_a_collection_of_somebody_else_is_not_touched(workspace: Workspace) -> None:
    raw = workspace.store().client.create_collection("demo", embedding_function=None)
    raw.add(ids=["theirs"], embeddings=[[1.0, 0.0, 0.0, 0.0]])
    for reset in (False, True):
        with pytest.raises(StoreError, match="not made by ragfilter") as error:
            index(some(3), name="demo", workspace=workspace, embedder=FakeEmbedder(), reset=reset)
        # Nothing that is offered would delete it.
        assert (error.value.remedy, error.value.action) == ("Choose another name.", "")
        assert set(stored(workspace)) == {"theirs"}


def test_chunks_that_the_model_does_not_read_whole_are_told(workspace: Workspace) -> None:
    records = [to_record({"id": f"c{n}", "text": "x" * n}, place="a") for n in (99, 100, 101)]
    embedder = FakeEmbedder()
    embedder.reads = 100  # type: ignore[attr-defined]
    made = index(records, name="long", workspace=workspace, embedder=embedder)
    assert made.warnings == (
        "The embedding model reads about 100 characters of a chunk, so it misses the end of 1 in "
        "3. Cut them smaller, or choose a model that reads more.",
    )


def test_a_sources_own_fields_are_kept_in_store_and_copy(workspace: Workspace) -> None:
    own = {"author": "x", "year": 1987, "tags": ["a", "ü"], "query_must_by": None}
    given = records({"id": "a", "text": "t", "special_handler": "Tables", "metadata": own})
    wanted = {**own, "special_handler": "Tables"}
    index(given, name="demo", workspace=workspace, embedder=FakeEmbedder())
    assert stored(workspace)["a"].metadata == wanted
    rebuild("demo", workspace=workspace)
    assert stored(workspace)["a"].metadata == wanted
    # When later left out, they are gone.
    index(records({"id": "a", "text": "t"}), name="demo", workspace=workspace, embedder=FakeEmbedder())
    assert stored(workspace)["a"].metadata == {}


# --- interruptions


def test_an_interrupted_embedding_leaves_the_old_collection_and_goes_on_from_there(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "EMBED_PART", 3)
    index(some(2), name="demo", workspace=workspace, embedder=FakeEmbedder())
    with pytest.raises(ModelError, match="power"):
        index(some(12), name="demo", workspace=workspace, embedder=FakeEmbedder(budget=7))
    assert stored(workspace) == expected(some(2))
    assert workspace.store().collections()[0].complete

    embedder = FakeEmbedder()
    report = index(some(12), name="demo", workspace=workspace, embedder=embedder)
    # Ten were new; two parts of three were kept.
    assert (report.embedded, len(embedder.embedded)) == (4, 4)
    assert stored(workspace) == expected(some(12))
    assert workspace.vectors.find("fake", embedder.embedded) == {}


@pytest.mark.parametrize(("reset", "again"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("writes", [0, 1, 2])
def test_an_interrupted_writing_is_seen_and_repaired_without_the_model(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, writes: int, reset: bool, again: bool
) -> None:
    index(some(6, "old"), name="demo", workspace=workspace, embedder=FakeEmbedder())
    monkeypatch.setattr(indexing, "WRITE_PART", 2)
    real, done = ChromaCollection.write, []

    def failing(self: ChromaCollection, batch: Any) -> None:
        if len(done) == writes:
            raise KeyboardInterrupt
        done.append(batch)
        real(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(ChromaCollection, "write", failing)
        with pytest.raises(KeyboardInterrupt):
            index(some(6), name="demo", workspace=workspace, embedder=FakeEmbedder(), reset=reset)
    assert not workspace.store().collections()[0].complete

    report = index(some(6), name="demo", workspace=workspace, embedder=FakeEmbedder(budget=0), reset=again)
    assert (report.embedded, report.written, report.unchanged) == (0, 6, 0 if again else 6)
    assert stored(workspace) == expected(some(6))
    assert workspace.store().collections()[0].complete


def test_one_collection_is_indexed_by_one_at_a_time(workspace: Workspace) -> None:
    def meanwhile(done: int, total: int) -> None:
        with pytest.raises(WorkspaceLocked, match="being indexed"):
            index(some(1), name="demo", workspace=workspace, embedder=FakeEmbedder())
        index(some(1), name="other", workspace=workspace, embedder=FakeEmbedder())

    index(some(3), name="demo", workspace=workspace, embedder=FakeEmbedder(), progress=meanwhile)
    assert [i.count for i in workspace.store().collections()] == [3, 1]


# --- rebuilding, and edited rules


def test_rebuild_restores_a_damaged_collection_without_the_model(tmp_path: Path) -> None:
    given = [*records(FULL), *some(1200)]
    with Workspace.open(tmp_path) as workspace:
        index(given, name="demo", workspace=workspace, embedder=FakeEmbedder())
        query = FakeEmbedder().embed(["query"])[0]
        before = workspace.store().collection("demo").nearest(query, 20)
    next((tmp_path / "chroma").rglob("header.bin")).unlink()
    with Workspace.open(tmp_path) as workspace:
        with pytest.raises(StoreError):
            workspace.store().collection("demo").nearest(query, 20)
        report = rebuild("demo", workspace=workspace)
        assert (report.total, report.written, report.embedded) == (1201, 1201, 0)
        assert stored(workspace) == expected(given)
        assert workspace.store().collection("demo").nearest(query, 20) == before


def test_what_rebuilding_cannot_repair_is_moved_away_and_rebuilt(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        for name in ("demo", "other"):
            index(some(3), name=name, workspace=workspace, embedder=FakeEmbedder())
    with closing(sqlite3.connect(tmp_path / "chroma" / "chroma.sqlite3")) as database:
        database.executescript("DROP TABLE collections")
    with Workspace.open(tmp_path) as workspace, pytest.raises(StoreError) as caught:
        rebuild("demo", workspace=workspace)
    assert f"Move {tmp_path / 'chroma'} away" in caught.value.remedy
    assert "has a copy: demo, other." in caught.value.remedy
    (tmp_path / "chroma").rename(tmp_path / "away")
    with Workspace.open(tmp_path) as workspace:
        for name in ("demo", "other"):
            rebuild(name, workspace=workspace)
            assert stored(workspace, name) == expected(some(3))


def test_rebuild_without_a_copy_is_refused(workspace: Workspace) -> None:
    with pytest.raises(StoreError, match="no copy") as error:
        rebuild("demo", workspace=workspace)
    assert error.value.remedy


def test_edited_rules_survive_rebuilding_and_indexing_anew(workspace: Workspace) -> None:
    rule = {"query_must": {"contain": "old"}}
    index(some(4, **rule), name="demo", workspace=workspace, embedder=FakeEmbedder())
    collection = workspace.store().collection("demo")
    collection.set_rules({"c0": '{"contain":"edited"}'})
    collection.set_rules({"c1": None})
    edits = {"c0": '{"contain":"edited"}', "c1": None, "gone": "{}"}
    after = {"c0": '{"contain":"edited"}', "c1": None, "c2": '{"contain":"old"}'}

    def rules() -> dict[str, str | None]:
        return {i: chunk.rule for i, chunk in stored(workspace).items() if i != "c3"}

    # Unchanged: the collection is not touched at all.
    index(some(4, **rule), name="demo", workspace=workspace, embedder=FakeEmbedder())
    assert rules() == after
    rebuild("demo", workspace=workspace, rules=edits)
    assert rules() == after
    # Changed at the source: the edit is applied on top.
    index(some(4, "new", **rule), name="demo", workspace=workspace, embedder=FakeEmbedder(), rules=lambda: edits)
    assert rules() == after
    # The copy has the values of the source.
    copy = {row.chunk.id: row.chunk.rule for row in workspace.contents.read("demo")}
    assert copy["c0"] == '{"contain":"old"}'
