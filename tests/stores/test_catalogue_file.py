"""The catalogue file is only valid for the version from which it was made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragfilter.model import Chunk
from ragfilter.stores import copies
from ragfilter.stores.chroma import ChromaCollection, ChromaStore
from ragfilter.stores.copies import StoredRow, read_catalogue, write_catalogue

CHUNKS = {
    chunk.id: chunk
    for chunk in (
        Chunk("a", type="rule", source="x.md", refs=("b", "ü"), rule='{"contain":"x"}', loaded=False),
        Chunk("b", clearance=None, department="ops", loaded=False),
        Chunk("ü", clearance=2**63 - 1, rule='{"contain":"x"}', loaded=False),
    )
}


@pytest.fixture(autouse=True)
def _always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "WORTH", 0)


def test_what_is_written_is_read_for_its_version_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "c.parquet"
    write_catalogue(path, "v1", CHUNKS)
    read = read_catalogue(path, "v1")
    assert read is not None
    assert dict(read) == CHUNKS
    assert read.distinct_rules == ('{"contain":"x"}',)
    assert read_catalogue(path, "v2") is None
    assert read_catalogue(tmp_path / "other.parquet", "v1") is None


def test_a_damaged_file_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "c.parquet"
    path.write_bytes(b"PAR1 and no more")
    assert read_catalogue(path, "v1") is None
    assert "is rebuilt" in caplog.text


def test_after_an_edit_the_next_opening_reads_the_file_and_not_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ChromaStore.folder(tmp_path / "chroma")
    collection = store.create("rules", embedder="given")
    vectors = np.eye(3, dtype=np.float32)
    collection.write([StoredRow(c, v) for c, v in zip(CHUNKS.values(), vectors, strict=True)])
    collection.set_content("x")
    collection.catalogue()
    collection.set_rules({"a": '{"contain":"y"}'})
    edited = dict(collection.catalogue())
    store.close()

    def read(self: ChromaCollection) -> None:
        raise AssertionError("every entry is read from the store")

    monkeypatch.setattr(ChromaCollection, "_read", read)
    again = ChromaStore.folder(tmp_path / "chroma")
    assert dict(again.collection("rules").catalogue()) == edited
    assert edited["a"].rule == '{"contain":"y"}'
    again.close()
