"""Our own copy of a collection."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from ragfilter.errors import StoreError
from ragfilter.model import Chunk
from ragfilter.stores.copies import Copies, StoredRow, content_fingerprint

FULL = StoredRow(
    Chunk("a\x00ä🙂", "text", "title", "type", "source", 7, ("b", "c"), None, "ops", '{"contain":"x"}'),
    np.array([0.6, 0.8], dtype=np.float32),
    "1.5",
    "f" * 64,
)
PLAIN = StoredRow(Chunk("b"), np.array([1, 0], dtype=np.float32), None, "0" * 64)


def same(left: StoredRow, right: StoredRow) -> bool:
    return (
        (left.chunk, left.fingerprint, left.clearance_as_given)
        == (right.chunk, right.fingerprint, right.clearance_as_given)
        and left.vector.dtype == right.vector.dtype
        and np.array_equal(left.vector, right.vector)
    )


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    for rows in [[PLAIN], [FULL, PLAIN]]:
        copies = Copies(tmp_path)
        copies.replace("demo", rows, embedder="modèle")
        found = copies.read("demo")
        assert len(found) == len(rows)
        assert all(same(left, right) for left, right in zip(found, rows, strict=True))
        summary = copies.summary("demo")
        assert summary.embedder == "modèle", rows
        assert summary.fingerprints == {row.chunk.id: row.fingerprint for row in rows}


def test_a_copy_of_another_schema_is_refused_and_not_called_damaged(tmp_path: Path) -> None:
    copies = Copies(tmp_path)
    copies.replace("demo", [FULL], embedder="m")
    path = copies.path("demo")
    pq.write_table(pq.read_table(path).drop_columns(["metadata"]), path)
    for read in (copies.read, copies.summary):
        with pytest.raises(StoreError, match="another schema") as error:
            read("demo")
        assert error.value.action == "replace"


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"no parquet" * 100])
def test_a_damaged_copy_is_told(tmp_path: Path, damage: bytes) -> None:
    copies = Copies(tmp_path)
    copies.path("demo").write_bytes(damage)
    for read in (copies.read, copies.summary):
        with pytest.raises(StoreError, match=r"demo\.parquet") as error:
            read("demo")
        assert error.value.action == "replace"


def test_a_failed_write_leaves_the_old_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copies = Copies(tmp_path)
    copies.replace("demo", [PLAIN], embedder="m")

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(StoreError, match="No space left"):
        copies.replace("demo", [FULL, PLAIN], embedder="m")
    assert [row.chunk.id for row in copies.read("demo")] == ["b"]
    assert [file.name for file in tmp_path.iterdir()] == ["demo.parquet"]


def test_the_fingerprint_of_the_content_knows_ids_contents_and_model_but_no_order() -> None:
    content = content_fingerprint("m", {"a": "1", "b": "2"})
    assert content == content_fingerprint("m", {"b": "2", "a": "1"})
    for model, prints in (
        ("n", {"a": "1", "b": "2"}),
        ("m", {"a": "1", "b": "3"}),
        ("m", {"a": "1"}),
        ("m", {"a": "1', 'b", "b": "2"}),
        ("m", {}),
    ):
        assert content_fingerprint(model, prints) != content
