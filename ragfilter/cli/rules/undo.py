"""`ragfilter rules undo` and `redo`: revert a change, and restore it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import MOST, DryRun, Filtering, Json, Place
from ragfilter.cli.rules.effect import Asking, effect_document, effect_text
from ragfilter.cli.rules.group import FOUND, OneChunk, rules
from ragfilter.cli.rules.history import edit_document
from ragfilter.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragfilter.rules.journal_rows import Edit, Turn

EditId = Annotated[
    int | None,
    typer.Option(
        "--edit",
        min=1,
        max=MOST,
        help="Any edit of the history, with what was changed together with it.",
    ),
]


Rest = Annotated[
    bool,
    typer.Option("--rest", help="Leave out the rules of the change that were changed since."),
]
MOST_TOLD = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Turning:
    """What to revert or restore: a change, one chunk's last edit, or the last of all."""

    chunk: OneChunk = None
    edit: EditId = None
    rest: Rest = False
    dry_run: DryRun = False


@command(rules)
def undo(
    place: Place, filtering: Filtering, asking: Asking, turning: Turning, as_json: Json = False
) -> int:
    """Undo the last change of the collection, the last edit of one chunk, or any edit.

    Exits with 1 if nothing was undone because labelled queries would lose recall.
    """
    return _change("undo", place, filtering, asking, turning, as_json=as_json)


@command(rules)
def redo(
    place: Place, filtering: Filtering, asking: Asking, turning: Turning, as_json: Json = False
) -> int:
    """Redo the change that was undone last, that of one chunk, or any that was undone.

    Exits with 1 if nothing was redone because labelled queries would lose recall.
    """
    return _change("redo", place, filtering, asking, turning, as_json=as_json)


def _change(
    kind: Turn,
    place: Place,
    filtering: Filtering,
    asking: Asking,
    what: Turning,
    *,
    as_json: bool,
) -> int:
    from ragfilter.rules import edits, steps
    from ragfilter.rules.journal_rows import turned

    chunk, edit = what.chunk, what.edit
    if chunk is not None and edit is not None:
        raise InputError("A chunk and --edit were both given.", remedy="Give one of them.")
    if chunk is not None and what.rest:
        raise InputError("--rest is for changes of several rules.", remedy="Leave out the chunk.")
    made: Sequence[Edit] = ()
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        journal, who = bench.journal, bench.deployment.user
        last = journal.turnable(kind, place.collection, chunk)
        if edit is None and chunk is None and last is not None and last.batch is not None:
            edit = last.id
        after: dict[str, str | None] = {}
        if edit is not None:
            entries = steps.plan(kind, store, journal, edit_id=edit, rest=what.rest)
            after = {entry.chunk_id: entry.after for entry in entries}
        elif last is not None:
            after = {last.chunk_id: turned(kind, last).after}
        else:
            raise InputError(
                f"There is nothing to {kind}.",
                remedy="See the history: `ragfilter rules history`.",
            )
        effect = asking.measure(after, bench, place, filtering)
        wanted = not what.dry_run and asking.agrees(effect)
        if wanted and edit is not None:
            made = steps.turn(kind, store, journal, edit_id=edit, who=who, rest=what.rest)
        elif wanted:
            made = (edits.turn(kind, store, journal, who=who, chunk_id=chunk),)
    document: dict[str, Any] = {"saved": wanted, "edits": [edit_document(each) for each in made]}
    lines = [*map(_text, made)]
    if what.dry_run:
        document["changes"] = after
        lines += [f"the rule of {i} would be {rule or 'none'}\n" for i, rule in after.items()]
    more = len(lines) - MOST_TOLD
    rest = f"and {more} more; --json lists them\n" if more > 0 else ""
    text = "".join([*lines[:MOST_TOLD], rest, effect_text(effect)])
    parts.emit(document | effect_document(effect) if as_json else text)
    return 0 if wanted or what.dry_run else FOUND


def _text(edit: Edit) -> str:
    return f"{edit.kind} of edit {edit.of}: the rule of {edit.chunk_id} is {edit.after or 'none'}\n"
