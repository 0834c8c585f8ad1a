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
from ragfilter.cli.options import Place, Viewing, text_argument, text_option
from ragfilter.cli.output import warn
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
VALUES = {"rule": ("any", "none"), "state": STORED}

rules = make_group(
    "rules",
    "List, suggest, check, explain, measure, test, change, export, import, undo and redo "
    "query_must rules.",
)
OneChunk = Annotated[
    str | None, text_argument(metavar="CHUNK", help="List only this chunk's edits.")
]
Where = Annotated[
    list[str] | None,
    text_option(
        "--where",
        help="Select chunks by field=value. Fields: type, source, id, title (* matches anything), "
        f"rule (any, none), state ({', '.join(STORED)}) and text (words). Repeatable: values of "
        "one field are alternatives, and every field must match.",
    ),
]


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected chunks, whole. `incomplete` says why the collection may be missing some."""

    chunks: tuple[Chunk, ...]
    incomplete: str = ""


def condition(text: str) -> tuple[str, str]:
    """Parse ``field=value``. Raises InputError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    fields = (*PLAIN, "state", "text")
    if not equals or name not in fields:
        raise InputError(
            f"--where {text!r} is not a condition.",
            remedy=f"Write field=value; fields are {', '.join(fields)}.",
        )
    if name == "text" and not value:
        # No words are in every chunk, so a script's empty variable would select all of them.
        raise InputError("--where text= names no words.", remedy="Write text=WORDS.")
    if value not in VALUES.get(name, (value,)):
        raise InputError(
            f"--where {name}={value} is not valid.",
            remedy=f"Write {name}= one of {', '.join(VALUES[name])}.",
        )
    return name, value


def _holds(chunk: Chunk, name: str, value: str) -> bool:
    """Whether a field of `PLAIN` has the value."""
    if name == "rule":
        return bool(chunk.rule) == (value == "any")
    pattern = ".*".join(map(re.escape, value.split("*")))
    return re.fullmatch(pattern, str(getattr(chunk, name)), re.IGNORECASE | re.DOTALL) is not None


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


def select_ids(
    bench: Workbench, collection: str, where: Sequence[str] | None, user: User
) -> list[str]:
    """The ids of the chunks that match, in stored order. For each field named in `where`, one of
    its conditions must hold. Only chunks that `user` may see. Raises InputError, StoreError."""
    by_field: dict[str, list[str]] = {}
    for name, value in map(condition, where or ()):
        by_field.setdefault(name, []).append(value)
    states, texts = (by_field.pop(name, []) for name in ("state", "text"))
    ids = [
        chunk.id
        for chunk in bench.collection(collection).entries().values()
        if user.sees(chunk)
        and all(any(_holds(chunk, name, v) for v in values) for name, values in by_field.items())
    ]
    if states or texts:
        # Among all visible chunks, since some findings depend on the other rules.
        listing = list_chunks(user, bench, collection)
        filters = [RuleFilter(text, states=tuple(states)) for text in texts or [""]]
        listed = {row.id for each in filters for row in listing.find(each)}
        ids = [chunk_id for chunk_id in ids if chunk_id in listed]
    return ids


def select(
    bench: Workbench,
    collection: str,
    where: Sequence[str] | None = (),
    *,
    user: User,
    limit: int | None = None,
) -> Selection:
    """The chunks that `select_ids` selects, at most `limit`. Reports what may be missing. Raises
    InputError, and StoreError if the collection is empty."""
    store = bench.collection(collection)
    store.check_not_empty()
    chunks = store.chunks(select_ids(bench, collection, where, user)[:limit])
    warn(store.incomplete)
    return Selection(tuple(chunks.values()), store.incomplete)


def select_rules(place: Place, viewing: Viewing, where: Sequence[str] | None) -> Selection:
    """The selected chunks that have a rule."""
    user = viewing.viewer
    with place.open("rules") as bench:
        return select(bench, place.collection, [*(where or ()), "rule=any"], user=user)
