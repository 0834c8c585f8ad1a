"""The text files of a workspace that is in a database."""

from __future__ import annotations

from ragfilter.basics import database
from ragfilter.basics.database import TEXT
from ragfilter.basics.extras import extra

with extra("chroma"):
    import sqlalchemy as sa

_files = database.table("workspace_files", sa.UniqueConstraint("name"), name=TEXT, text=TEXT)


class FileTable(database.Book):
    """Texts by name."""

    what = "workspace"
    called = "The workspace's database"
    tables = (_files,)

    def names(self) -> list[str]:
        """All names."""
        return [name for (name,) in self._read(sa.select(_files.c.name))]

    def read(self, name: str) -> str | None:
        """The text of this name, None if there is none."""
        found = self._read(sa.select(_files.c.text).where(_files.c.name == name))
        return found[0][0] if found else None

    def write(self, name: str, text: str | None) -> None:
        """Put a text in place of any of this name; None removes it."""
        with self._writing() as connection:
            connection.execute(_files.delete().where(_files.c.name == name))
            if text is not None:
                connection.execute(_files.insert().values(name=name, text=text))
