"""The text files of a workspace that is in a database."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from ragfilter.basics import database
from ragfilter.basics.database import TEXT
from ragfilter.basics.extras import extra
from ragfilter.basics.text_files import TextFiles

with extra("chroma"):
    import sqlalchemy as sa

_files = database.table("workspace_files", sa.UniqueConstraint("name"), name=TEXT, text=TEXT)


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
