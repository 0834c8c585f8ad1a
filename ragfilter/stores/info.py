"""A collection in a list, and what it may be called, in whichever store."""

from __future__ import annotations

from dataclasses import dataclass

from ragfilter.errors import InputError
from ragfilter.model import Space

NAME_RULE = (
    "Use 3 to 512 letters, digits, dots, hyphens or underscores, "
    "with a letter or digit at both ends."
)


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection in a list. `embedder` is empty if it is not known; `incomplete` says why chunks
    are missing, and is empty if none are."""

    name: str
    count: int
    space: Space
    embedder: str
    ours: bool
    incomplete: str

    @property
    def complete(self) -> bool:
        return not self.incomplete


def check_name(name: str) -> None:
    """Raise InputError if `name` is none for a collection: Chroma would refuse it."""
    good = 3 <= len(name) <= 512 and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)
    if not good or not (name[0].isalnum() and name[-1].isalnum()):
        raise InputError(f"{name!r} cannot be the name of a collection.", remedy=NAME_RULE)
