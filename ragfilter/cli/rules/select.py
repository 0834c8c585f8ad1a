"""Selects the chunks of a `rules` command: `--where field=value`, and what the user may see."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from ragfilter.errors import InputError
from ragfilter.model import Chunk, User
from ragfilter.rules.lint import usual_words
from ragfilter.rules.overview import STORED, Checks, Listing, RuleFilter, make_listing

if TYPE_CHECKING:
    from ragfilter.workbench import Workbench

PLAIN = ("type", "source", "id", "title", "rule")
"""Fields that a chunk alone decides."""
LISTED = ("state", "text")
"""Fields that need the listing."""
FIELDS = (*PLAIN, *LISTED)
VALUES = {"rule": ("any", "none"), "state": STORED}


@dataclass(frozen=True, slots=True)
class Condition:
    """One `--where`."""

    field: str
    value: str

    def holds(self, chunk: Chunk) -> bool:
        """Whether `chunk` meets the condition, whose field is one of `PLAIN`."""
        if self.field == "rule":
            return bool(chunk.rule) == (self.value == "any")
        pattern = ".*".join(map(re.escape, self.value.split("*")))
        text = str(getattr(chunk, self.field))
        return re.fullmatch(pattern, text, re.IGNORECASE | re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected chunks, whole. `incomplete` says why the collection may be missing some."""

    chunks: tuple[Chunk, ...]
    incomplete: str = ""


def condition(text: str) -> Condition:
    """Parse ``field=value``. Raises InputError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or name not in FIELDS:
        raise InputError(
            f"--where {text!r} is not a condition.",
            remedy=f"Write field=value; fields are {', '.join(FIELDS)}.",
        )
    if name == "text" and not value:
        # No words are in every chunk, so a script's empty variable would select all of them.
        raise InputError("--where text= names no words.", remedy="Write text=WORDS.")
    if value not in VALUES.get(name, (value,)):
        *others, last = VALUES[name]
        raise InputError(
            f"--where {name}={value} is not valid.",
            remedy=f"Write {name}={', '.join(others)} or {last}.",
        )
    return Condition(name, value)


def list_chunks(
    user: User,
    bench: Workbench,
    collection: str,
    harm: Mapping[str, float] = MappingProxyType({}),
) -> Listing:
    """The listing of the chunks that `user` may see, with their states. Raises StoreError."""
    from ragfilter.evaluate import stored

    every = bench.collection(collection).entries()
    usual = usual_words(stored.every_question(bench.labels, collection, every, user))
    exported = bench.journal.edited_since_export(collection)
    seen = filter(user.sees, every.values())
    return make_listing(seen, Checks(usual), exported=exported, harm=harm)


def select(
    bench: Workbench,
    collection: str,
    where: Sequence[str] = (),
    *,
    user: User,
    limit: int | None = None,
) -> Selection:
    """The chunks of `collection` that match, in stored order, at most `limit`.

    For each field named in `where`, one of its conditions must hold. Only chunks that `user` may
    see. Raises InputError, and StoreError if the collection is empty.
    """
    conditions = [condition(text) for text in where]
    store = bench.collection(collection)
    store.check_not_empty()
    known = store.entries()
    by_field = [[c for c in conditions if c.field == name] for name in PLAIN]
    seen = [
        chunk.id
        for chunk in known.values()
        if user.sees(chunk) and all(any(c.holds(chunk) for c in each) for each in by_field if each)
    ]
    asked = [c for c in conditions if c.field in LISTED]
    if asked:
        # Among all visible chunks, since some findings depend on the other rules.
        listing = list_chunks(user, bench, collection)
        listed = _listed(listing, asked)
        seen = [chunk_id for chunk_id in seen if chunk_id in listed]
    found = store.chunks(seen[:limit])
    return Selection(tuple(found.values()), store.incomplete)


def _listed(listing: Listing, asked: Sequence[Condition]) -> set[str]:
    """The ids of the rows that are in one of the states asked for, with one of the texts."""
    states = tuple(c.value for c in asked if c.field == "state")
    texts = [c.value for c in asked if c.field == "text"] or [""]
    return {row.id for text in texts for row in listing.find(RuleFilter(text, states=states))}
