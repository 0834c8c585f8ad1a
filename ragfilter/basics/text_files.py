"""The small text files of a workspace, by their paths in it."""

from __future__ import annotations

from pathlib import Path

from ragfilter.basics.files import kind, read_text, write_text
from ragfilter.errors import InputError


class TextFiles:
    """Text files in `folder`. Raises InputError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self, under: str) -> list[str]:
        """The names of the files in a folder."""
        return [path.name for path in (self.folder / under).glob("*")]

    def path(self, name: str) -> Path:
        """Where a file is read on this machine; nothing is there if there is none."""
        return self.folder / name

    def read(self, name: str) -> str | None:
        """What is in a file, None if there is none."""
        path = self.path(name)
        return read_text(path) if kind(path) else None

    def write(self, name: str, text: str) -> None:
        """Write a file, in place of any that was there."""
        remedy = "Free up disk space, or make the workspace folder writable."
        write_text(self.folder / name, text, remedy=remedy)

    def delete(self, name: str) -> None:
        """Delete a file, if there is one."""
        path = self.folder / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(
                f"{path} cannot be deleted: {error.strerror}.",
                remedy="Make the workspace folder writable.",
            ) from None

    def close(self) -> None:
        """Close what holds them."""
