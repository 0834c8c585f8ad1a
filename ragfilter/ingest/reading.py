"""How files become records: the length of passages, the meaning of CSV columns, and what happens to
records that cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ragfilter.errors import InputError

LONGEST = 1000
"""Characters of a passage. The bundled model reads 256 tokens; English takes a little over four
characters each."""
SHORTEST, MOST = 100, 8000
"""The range of `size`, in characters."""
COLUMNS = ("text", "id", "title", "type", "source", "page", "clearance", "department", "refs")
"""The fields that a column of a table can be named for."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read.

    `size` and `overlap` are characters of a passage; with `headings` off, Markdown is cut like
    plain text. `columns` names the column of a CSV file that holds a field, empty for none, even
    if one is called like the field; rows without an id are numbered. A record that cannot be used
    is given to `skip` and left out; without `skip` it ends the reading. Raises InputError for sizes
    that are out of range.
    """

    size: int = LONGEST
    overlap: int = 0
    headings: bool = True
    columns: Mapping[str, str] = field(default_factory=dict)
    skip: Callable[[InputError], None] | None = None

    def __post_init__(self) -> None:
        if not SHORTEST <= self.size <= MOST:
            raise InputError(
                f"Passages of {self.size} characters cannot be made.",
                remedy=f"Choose a size from {SHORTEST} to {MOST:,}.",
            )
        if not 0 <= self.overlap <= self.size // 2:
            raise InputError(
                f"Passages of {self.size} characters cannot overlap by {self.overlap}.",
                remedy=f"Choose an overlap from 0 to {self.size // 2}, half the size.",
            )
        for name in self.columns.keys() - set(COLUMNS):
            raise InputError(
                f"There is no field {name!r} that a column could hold.",
                remedy=f"Name one of {', '.join(COLUMNS)}; other columns are kept as metadata.",
            )
        named = [column for column in self.columns.values() if column]
        if len({*named}) < len(named):
            raise InputError(
                "One column is named for two fields.", remedy="Name another column for one of them."
            )
        if self.columns and not self.columns.get("text"):
            raise InputError(
                "No column is named for the text.", remedy="Name the column that holds it."
            )

    def refuse(self, error: InputError) -> None:
        """Leave out what `error` is about. Raises it where nothing may be left out."""
        if self.skip is None:
            raise error
        self.skip(error)


def nothing_in(source: str) -> InputError:
    """What is told of a file without records."""
    return InputError(
        f"{source}: there is nothing in it that can be indexed.",
        remedy="See whether the file is empty.",
    )


PLAIN = ReadOptions()
