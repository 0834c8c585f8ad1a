"""Selects the chunks of a `rules` command: `--where field=value`, and what the user may see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragfilter.errors import CollectionMissing, InputError
from ragfilter.model import Chunk, User

if TYPE_CHECKING:
    from ragfilter.stores.chroma.collection import ChromaCollection

FIELDS = ("type", "source", "id", "title", "rule")
RULE_VALUES = ("any", "none")


@dataclass(frozen=True, slots=True)
class Condition:
    """One `--where`."""

    field: str
    value: str

    def holds(self, chunk: Chunk) -> bool:
        """Whether `chunk` meets the condition."""
        if self.field == "rule":
            return bool(chunk.rule) == (self.value == "any")
        pattern = ".*".join(map(re.escape, self.value.split("*")))
        text = str(getattr(chunk, self.field))
        return re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected chunks, whole. `hidden` is how many clearance removed; `incomplete` says why the
    collection may be missing some."""

    chunks: tuple[Chunk, ...]
    hidden: int
    incomplete: str = ""

    @property
    def notice(self) -> str:
        """A note on what is missing; empty if nothing is."""
        return " ".join(filter(None, (self.incomplete, self._left_out)))

    @property
    def _left_out(self) -> str:
        if not self.hidden:
            return ""
        what = "1 chunk is" if self.hidden == 1 else f"{self.hidden:,} chunks are"
        return (
            f"{what} left out: above the user's clearance. Raise it with --level N, or switch it "
            "off with --set clearance.enabled=false."
        )


def condition(text: str) -> Condition:
    """Parse ``field=value``. Raises InputError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or name not in FIELDS:
        raise InputError(
            f"--where {text!r} is not a condition.",
            remedy=f"Write field=value; fields are {', '.join(FIELDS)}.",
        )
    if name == "rule" and value not in RULE_VALUES:
        raise InputError(f"--where rule={value} is not valid.", remedy="Write rule=any or none.")
    return Condition(name, value)


def select(
    collection: ChromaCollection,
    where: Sequence[str] = (),
    *,
    user: User,
    limit: int | None = None,
) -> Selection:
    """The chunks of `collection` that match, in stored order, at most `limit`.

    For each field named in `where`, one of its conditions must hold. Only chunks that `user` may
    see. Raises InputError, StoreError, and CollectionMissing if the collection is empty.
    """
    conditions = [condition(text) for text in where]
    known = collection.entries()
    if not known:
        raise CollectionMissing(
            f"The collection {collection.name!r} is empty.", remedy="Index chunks into it first."
        )
    by_field = [[c for c in conditions if c.field == name] for name in FIELDS]
    fitting = [
        chunk
        for chunk in known.values()
        if all(any(c.holds(chunk) for c in each) for each in by_field if each)
    ]
    seen = [c.id for c in fitting if user.sees(c)]
    found = collection.chunks(seen[:limit])
    return Selection(
        tuple(found.values()),
        hidden=len(fitting) - len(seen),
        incomplete=collection.incomplete,
    )
