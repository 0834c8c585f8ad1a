"""Files are written completely, or left as they were."""

from __future__ import annotations

import gzip
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from ragfilter.basics.files import read_lines, read_text, write_text
from ragfilter.errors import InputError


@pytest.mark.parametrize("name", ["folder", "taken/one.txt", "x" * 300])
def test_what_cannot_be_written_is_told_and_nothing_is_left(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match=r"cannot be written: .+ Name another file\."):
        write_text(tmp_path / name, "text", remedy="Name another file.")
    assert {each.name for each in tmp_path.iterdir()} == {"folder", "taken"}


def test_text_is_read_in_any_encoding_that_marks_itself(tmp_path: Path) -> None:
    for encoding in ["utf-8", "utf-8-sig", "utf-16"]:
        path = tmp_path / "one.txt"
        path.write_bytes("Größe\r\n東京\u2028\n".encode(encoding))
        assert read_text(path) == "Größe\n東京\u2028\n", encoding
        assert list(read_lines(path)) == ["Größe", "東京\u2028"], encoding


def test_a_compressed_file_is_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "qrels.gz").write_bytes(gzip.compress(b"q1 0 a 1\n"))
    with pytest.raises(InputError, match=r"qrels.gz, line 1: not UTF-8 at byte 2. Unpack it if"):
        read_text(tmp_path / "qrels.gz")


def test_lines_are_read_up_to_the_one_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    path.write_bytes(b"one\n" * 100_000 + b"t\xfcr\n")
    tracemalloc.start()
    lines = read_lines(path)
    assert sum(line == "one" for line in islice(lines, 100_000)) == 100_000
    assert tracemalloc.get_traced_memory()[1] < path.stat().st_size / 2
    tracemalloc.stop()
    with pytest.raises(InputError, match=r"large.jsonl, line 100001: not UTF-8 at byte 2"):
        next(lines)


def test_a_link_stays_one_and_a_file_keeps_who_may_read_it(tmp_path: Path) -> None:
    real, link = tmp_path / "kept" / "real.txt", tmp_path / "link.txt"
    write_text(real, "old", remedy="")
    real.chmod(0o600)
    link.symlink_to(real)
    write_text(link, "new", remedy="")
    assert link.is_symlink()
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("new", 0o600)
