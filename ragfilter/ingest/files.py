"""Reads a text file, or says in one line why it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragfilter.errors import InputError


def read_text(path: Path, source: str = "") -> str:
    """The UTF-8 text of a file, a byte order mark left out, line ends as ``\\n``.

    Raises InputError naming `source`, or else the path: unreadable, or not UTF-8.
    """
    return "\n".join(read_lines(path, source))


def read_lines(path: Path, source: str = "") -> Iterator[str]:
    """The lines of a UTF-8 file without their ends. Raises InputError like `read_text`."""
    number = 0
    try:
        # In binary, so that the line of a bad byte is known, and only line feeds end a line.
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{source or path}, line {number}: not UTF-8 at byte {error.start + 1}.",
            remedy="Save the file as UTF-8.",
        ) from None
    except OSError as error:
        raise InputError(
            f"{source or path} cannot be read: {error.strerror}.",
            remedy="Check its name and permissions.",
        ) from None
