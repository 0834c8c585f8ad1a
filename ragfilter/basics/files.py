"""Reads text files, or says in one line why it cannot; writes them completely or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal
from uuid import uuid4

from ragfilter.errors import InputError


def kind(path: str | os.PathLike[str]) -> Literal["", "file", "folder", "other"]:
    """What is at a path; empty if nothing is. Nothing is, either, at one that no file can have:
    for a name that is too long, `Path.exists` raises."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return ""
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def read_text(path: Path, name: str = "") -> str:
    """The UTF-8 text of a file, a byte order mark left out, line ends as ``\\n``.

    Raises InputError naming it `name`, or else its path: unreadable, or not UTF-8.
    """
    return "".join(_lines(path, name))


def read_lines(path: Path, name: str = "") -> Iterator[str]:
    """The lines of a UTF-8 file without their ends. Raises InputError like `read_text`."""
    return (line.removesuffix("\n") for line in _lines(path, name))


def _lines(path: Path, name: str) -> Iterator[str]:
    try:
        # In binary, so that the line of a bad byte is known, and only line feeds end a line.
        with path.open("rb") as file:
            yield from _decoded(file, name or str(path))
    except OSError as error:
        raise InputError(
            f"{name or path} cannot be read: {error.strerror or error}.",
            remedy="Check its name and permissions.",
        ) from None


def decode(content: bytes, name: str) -> str:
    """The text of a file's content; `name` is the file's in messages. Raises InputError."""
    return "".join(_decoded(io.BytesIO(content), name))


def _decoded(lines: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: not UTF-8 at byte {error.start + 1}.",
                remedy="Save the file as UTF-8.",
            ) from None
        yield text.replace("\r\n", "\n")


def write_text(path: Path, text: str, *, remedy: str) -> None:
    """Write a file in UTF-8, in place of any that was there; its folder is made where it is
    missing. Raises InputError with this remedy."""
    # A link stays one: what it leads to is replaced.
    real = Path(os.path.realpath(path))
    part = real.with_name(f".{uuid4().hex}.part")
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            # A device or a pipe, such as /dev/stdout: nothing can take its place.
            path.write_text(text, encoding="utf-8")
            return
        part.write_text(text, encoding="utf-8")
        if real.exists():
            shutil.copymode(real, part)
        part.replace(real)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}.", remedy=remedy
        ) from None
