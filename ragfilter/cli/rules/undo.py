"""`ragfilter rules undo` and `redo`: a change, taken back and made again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import MOST, Json, Place
from ragfilter.cli.rules.group import OneChunk, rules
from ragfilter.cli.rules.history import edit_document
from ragfilter.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragfilter.rules.journal_rows import Edit

EditId = Annotated[
    int | None,
    typer.Option(
        "--edit",
        max=MOST,
        help="Any edit of the history, with what was changed together with it.",
    ),
]


MOST_TOLD = 5


@command(rules)
def undo(place: Place, chunk: OneChunk = None, edit: EditId = None, as_json: Json = False) -> None:
    """Undo the last change of the collection, the last edit of one chunk, or any edit."""
    _change(place, chunk, edit, again=False, as_json=as_json)


@command(rules)
def redo(place: Place, chunk: OneChunk = None, edit: EditId = None, as_json: Json = False) -> None:
    """Redo the change that was undone last, that of one chunk, or any that was undone."""
    _change(place, chunk, edit, again=True, as_json=as_json)


def _change(
    place: Place, chunk: str | None, edit: int | None, *, again: bool, as_json: bool
) -> None:
    from ragfilter.rules import edits, steps

    if chunk is not None and edit is not None:
        raise InputError("A chunk and --edit were both given.", remedy="Give one of them.")
    made: Sequence[Edit]
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        journal, who = bench.journal, bench.deployment.user
        last = (journal.redoable if again else journal.undoable)(place.collection, chunk)
        if edit is None and chunk is None and last is not None and last.batch is not None:
            edit = last.id
        if edit is not None:
            change = steps.redo_step if again else steps.undo_step
            made = change(store, journal, edit_id=edit, who=who)
        else:
            one = edits.redo if again else edits.undo
            made = (one(store, journal, who=who, chunk_id=chunk),)
    if as_json:
        documents = [edit_document(each) for each in made]
        parts.emit(parts.dumps(documents[0] if len(documents) == 1 else documents))
    else:
        parts.emit("".join(map(_text, made[:MOST_TOLD])))
        if len(made) > MOST_TOLD:
            parts.emit(f"and {len(made) - MOST_TOLD} more; --json lists them\n")


def _text(edit: Edit) -> str:
    rule = "none" if edit.after is None else edit.after
    return f"{edit.kind} of edit {edit.of}: the rule of {edit.chunk_id} is {rule}\n"
