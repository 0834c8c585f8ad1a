"""The small text files of a workspace, by their paths in it: in its folder, or in its database."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from ragfilter.basics import database
from ragfilter.basics.database import TEXT
from ragfilter.basics.extras import extra
from ragfilter.basics.files import kind, read_text, write_text
from ragfilter.errors import InputError

with extra("chroma"):
    import sqlalchemy as sa
_files = database.table("workspace_files", sa.UniqueConstraint("name"), name=TEXT, text=TEXT)


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


class SharedTextFiles(TextFiles):
    """Text files in the database at `url`, copied to `folder` to be read there. Also raises
    StoreError."""

    def __init__(self, folder: Path, url: str) -> None:
        super().__init__(folder)
        self._url = url

    @cached_property
    def _table(self) -> _FileTable:
        return _FileTable(self._url)

    def names(self, under: str) -> list[str]:
        start = f"{under}/"
        return [n.removeprefix(start) for n in self._table.names() if n.startswith(start)]

    def path(self, name: str) -> Path:
        text = self.read(name)
        if text is None:
            super().delete(name)
        else:
            super().write(name, text)
        return super().path(name)

    def read(self, name: str) -> str | None:
        return self._table.text(name)

    def write(self, name: str, text: str) -> None:
        self._table.put(name, text)

    def delete(self, name: str) -> None:
        self._table.put(name, None)

    def close(self) -> None:
        if "_table" in vars(self):
            self._table.close()
            del self._table


class _FileTable(database.Book):
    what = "workspace"
    called = "The workspace's database"
    tables = (_files,)

    def names(self) -> list[str]:
        return [name for (name,) in self._read(sa.select(_files.c.name))]

    def text(self, name: str) -> str | None:
        found = self._read(sa.select(_files.c.text).where(_files.c.name == name))
        return found[0][0] if found else None

    def put(self, name: str, text: str | None) -> None:
        with self._writing() as connection:
            connection.execute(_files.delete().where(_files.c.name == name))
            if text is not None:
                connection.execute(_files.insert().values(name=name, text=text))
