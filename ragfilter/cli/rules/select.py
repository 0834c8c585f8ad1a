"""The command group `ragfilter rules`, and the chunks that its commands select: `--where
field=value`, among those that the user may see.

`import`, `bulk`, `check --apply`, `undo` and `redo` write through the journal. Commands that read
chunks leave out what the current clearance settings hide. The journal is for the owner of the
workspace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from ragfilter.cli.app import make_group
from ragfilter.cli.options import Place, Viewing, text_argument
from ragfilter.cli.output import tell
from ragfilter.errors import InputError
from ragfilter.model import Chunk, User
from ragfilter.rules.lint import usual_words
from ragfilter.rules.overview import STORED, Checks, Listing, RuleFilter, make_listing

if TYPE_CHECKING:
    from ragfilter.workbench import Workbench

FOUND = 1
"""The exit code if there is something to look at."""
PLAIN = ("type", "source", "id", "title", "rule")
"""Fields that a chunk alone decides."""
LISTED = ("state", "text")
"""Fields that need the listing."""
FIELDS = (*PLAIN, *LISTED)
VALUES = {"rule": ("any", "none"), "state": STORED}

rules = make_group(
    "rules",
    "List, suggest, check, explain, measure, test, change, export, import, undo and redo "
    "query_must rules.",
)
OneChunk = Annotated[
    str | None, text_argument(metavar="CHUNK", help="List only this chunk's edits.")
]


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
    chunks = bench.collection(collection).entries()
    exported = bench.journal.edited_since_export(collection)
    visible = filter(user.sees, chunks.values())
    checks = Checks(known_words(bench, collection, user))
    return make_listing(visible, checks, exported=exported, harm=harm)


def known_words(bench: Workbench, collection: str, user: User) -> frozenset[str]:
    """The words of nearly every question that `user` may know of."""
    from ragfilter.evaluate import query_sets

    chunks = bench.collection(collection).entries()
    return usual_words(query_sets.every_question(bench.labels, collection, chunks, user))


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
    by_field = [[c for c in conditions if c.field == name] for name in PLAIN]
    ids = [
        chunk.id
        for chunk in store.entries().values()
        if user.sees(chunk) and all(any(c.holds(chunk) for c in each) for each in by_field if each)
    ]
    states = tuple(c.value for c in conditions if c.field == "state")
    texts = [c.value for c in conditions if c.field == "text"]
    if states or texts:
        # Among all visible chunks, since some findings depend on the other rules.
        listing = list_chunks(user, bench, collection)
        filters = [RuleFilter(text, states=states) for text in texts or [""]]
        listed = {row.id for each in filters for row in listing.find(each)}
        ids = [chunk_id for chunk_id in ids if chunk_id in listed]
    chunks = store.chunks(ids[:limit])
    return Selection(tuple(chunks.values()), store.incomplete)


def select_rules(place: Place, viewing: Viewing, where: Sequence[str] | None) -> Selection:
    """The selected chunks that have a rule. What may be missing is reported."""
    user = viewing.viewer
    with place.open("rules") as bench:
        selected = select(bench, place.collection, [*(where or ()), "rule=any"], user=user)
    tell(selected.incomplete)
    return selected
