"""`ragfilter rules history`, `undo` and `redo`: the edits of rules, reverted and restored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli.app import command
from ragfilter.cli.options import MAX_NUMBER, Filtering, Json, Place
from ragfilter.cli.output import emit, show, table
from ragfilter.cli.rules.select import FOUND, OneChunk, Saving, change_text, rules
from ragfilter.errors import InputError
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from ragfilter.rules.journal import Edit, Journal, Step, Turn

EditId = Annotated[
    int | None,
    typer.Option(
        "--edit", min=1, max=MAX_NUMBER, help="An edit, with all that was changed in its step."
    ),
]
RULE_CHARS = 60
MAX_LISTED = 5


@command(rules)
def history(
    place: Place,
    chunk: OneChunk = None,
    edit: EditId = None,
    limit: Annotated[
        int, typer.Option(min=1, max=MAX_NUMBER, help="Maximum number of edits.")
    ] = 20,
    as_json: Json = False,
) -> None:
    """List the edits of rules, newest first.

    Rules changed in one step share a line; --json and a chunk's own history list each.
    """
    from ragfilter.rules.journal import Step

    if chunk is not None and edit is not None:
        raise InputError("A chunk and --edit were both given.", remedy="Pass only one of them.")
    with place.open("rules") as bench:
        bench.collection(place.collection)
        journal = bench.journal
        if edit is not None:
            edits = _together(journal, place.collection, edit)
            before, after = ({e.chunk_id: getattr(e, side) for e in edits}
                             for side in ("before", "after"))  # fmt: skip
            show(edits, change_text(before, after), as_json=as_json)
            return
        if as_json:
            emit(journal.history(place.collection, chunk, limit=limit))
            return
        if chunk is None:
            steps = journal.steps(place.collection, limit=limit)
        else:
            edits = journal.history(place.collection, chunk, limit=limit)
            steps = tuple(Step(edit, 1, int(edit.state == "done")) for edit in edits)
    if steps:
        heads = ("edit", "when", "who", "kind", "state", "chunk", "rule")
        emit(table(heads, map(_row, steps)))
    else:
        typer.echo("No rule has been edited yet.", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turning:
    """What to revert or restore: a change, one chunk's last edit, or the last of all."""

    chunk: OneChunk = None
    edit: EditId = None
    rest: Annotated[bool, "Leave out rules that were changed since."] = False


@command(rules)
def undo(
    place: Place, filtering: Filtering, saving: Saving, turning: Turning, as_json: Json = False
) -> int:
    """Undo the last change of the collection, the last edit of one chunk, or any edit.

    Exits with 1 if nothing was undone because labelled queries would lose recall.
    """
    return _turn("undo", place, filtering, saving, turning, as_json)


@command(rules)
def redo(
    place: Place, filtering: Filtering, saving: Saving, turning: Turning, as_json: Json = False
) -> int:
    """Redo the change that was undone last, the last of one chunk, or any that was undone.

    Exits with 1 if nothing was redone because labelled queries would lose recall.
    """
    return _turn("redo", place, filtering, saving, turning, as_json)


def _turn(
    kind: Turn, place: Place, filtering: Filtering, saving: Saving, turning: Turning, as_json: Json
) -> int:
    from ragfilter.rules import edits

    chunk, edit, rest = turning.chunk, turning.edit, turning.rest
    if chunk is not None and edit is not None:
        raise InputError("A chunk and --edit were both given.", remedy="Give one of them.")
    if chunk is not None and rest:
        raise InputError("--rest is for changes of several rules.", remedy="Leave out the chunk.")
    turned: tuple[Edit, ...] = ()
    with place.open("rules") as bench:
        store, journal = bench.collection(place.collection), bench.journal
        entries = edits.plan_turn(kind, store, journal, edit_id=edit, chunk_id=chunk, rest=rest)
        after = {entry.chunk_id: entry.after for entry in entries}
        saved = saving.weigh(after, bench, place, filtering)
        if saved.done:
            who = bench.deployment.user
            turned = edits.turn(
                kind, store, journal, who=who, edit_id=edit, chunk_id=chunk, rest=rest
            )
    document: dict[str, Any] = {"saved": saved.done, "edits": turned}
    lines = [f"{e.kind} of edit {e.of}: the rule of {e.chunk_id} is {e.after or 'none'}\n"
             for e in turned]  # fmt: skip
    if saving.dry_run:
        document["changes"] = after
        lines = [f"the rule of {i} would be {rule or 'none'}\n" for i, rule in after.items()]
    more = len(lines) - MAX_LISTED
    lines[MAX_LISTED:] = [f"and {more} more; --json lists them\n"] if more > 0 else []
    show(document | saved.document, "".join([*lines, saved.text]), as_json=as_json)
    return 0 if saved.wanted else FOUND


def _together(journal: Journal, collection: str, edit_id: int) -> tuple[Edit, ...]:
    """An edit of the collection, with those made together with it. Raises InputError."""
    edits = journal.step(edit_id)
    if not edits or edits[0].collection != collection:
        raise InputError(
            f"{collection} has no edit {edit_id}.", remedy="`ragfilter rules history` lists them."
        )
    return edits


def _row(step: Step) -> tuple[object, ...]:
    edit = step.edit
    alone = step.size == 1
    return (
        edit.id,
        edit.at.isoformat(sep=" ", timespec="seconds"),
        edit.who,
        edit.kind,
        edit.state if step.done in (0, step.size) else f"{step.done} of {step.size} done",
        edit.chunk_id if alone else counted(step.size, "chunk"),
        f"{_short(edit.before)} -> {_short(edit.after)}" if alone else "one step",
    )


def _short(rule: str | None) -> str:
    text = rule or "none"
    return text if len(text) <= RULE_CHARS else f"{text[: RULE_CHARS - 1]}…"
