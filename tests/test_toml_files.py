"""The shared loader of TOML files: errors name the file and the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragfilter.basics.files import read_toml, toml_paths
from ragfilter.errors import InputError

ROOT = Path(__file__).resolve().parents[1]

BAD = [
    (b"a = 1\n[b", "x.toml is not valid TOML: Expected ']' at the end of a table declaration"),
    (b"a = 1\nb = =", "(at line 2, column 5)"),
    (b"a = 1\nb = \xe9", "x.toml, line 2: not UTF-8 at byte 5."),
    (b"[c]\na = " + b"[" * 9_000, "x.toml is not valid TOML: it is nested too deeply"),
    # int() itself rejects it, with an error that is not TOML's
    (b"a = 1" + b"0" * 5_000, "x.toml is not valid TOML: Exceeds the limit"),
]


@pytest.mark.parametrize(("content", "said"), BAD)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_toml(path)
    assert said in caught.value.message
    assert caught.value.message.startswith(str(path))
    assert caught.value.remedy


def test_a_folder_is_listed_by_name(tmp_path: Path) -> None:
    for name in ("a-b.toml", "a.toml", "a.txt", "0.toml"):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbfkey = 1")
    assert [path.name for path in toml_paths(tmp_path)] == ["0.toml", "a.toml", "a-b.toml"]
    assert read_toml(tmp_path / "a.toml") == {"key": 1}
    for wrong in ("none", "a.txt"):
        with pytest.raises(InputError, match=rf"{wrong} cannot be read: "):
            toml_paths(tmp_path / wrong)


def test_nothing_else_reads_toml() -> None:
    readers = [p.name for p in ROOT.glob("ragfilter/**/*.py") if "tomllib" in p.read_text("utf-8")]
    assert readers == ["files.py"]
