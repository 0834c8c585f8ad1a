"""`ragfilter rules undo` and `redo`: the last edit, taken back and made again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Json, Place
from ragfilter.cli.rules.group import OneChunk, rules
from ragfilter.cli.rules.history import edit_document

if TYPE_CHECKING:
    from ragfilter.rules.journal import Edit


@command(rules)
def undo(place: Place, chunk: OneChunk = None, as_json: Json = False) -> None:
    """Undo the last edit of the collection, or of one chunk."""
    from ragfilter.rules import edits

    _change(edits.undo, place, chunk, as_json=as_json)


@command(rules)
def redo(place: Place, chunk: OneChunk = None, as_json: Json = False) -> None:
    """Redo the edit that was undone last."""
    from ragfilter.rules import edits

    _change(edits.redo, place, chunk, as_json=as_json)


def _change(change: Callable[..., Edit], place: Place, chunk: str | None, *, as_json: bool) -> None:
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        made = change(store, bench.journal, who=bench.deployment.user, chunk_id=chunk)
    parts.emit(parts.dumps(edit_document(made)) if as_json else _text(made))


def _text(edit: Edit) -> str:
    rule = "none" if edit.after is None else edit.after
    return f"{edit.kind} of edit {edit.of}: the rule of {edit.chunk_id} is {rule}\n"
