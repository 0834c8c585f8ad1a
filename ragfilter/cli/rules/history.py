"""`ragfilter rules history`: the edits of rules."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import MOST, Json, Place
from ragfilter.cli.output import table
from ragfilter.cli.rules.group import OneChunk, rules
from ragfilter.errors import InputError
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from ragfilter.rules.journal import Journal
    from ragfilter.rules.journal_rows import Edit, Step

RULE_CHARS = 60


@command(rules)
def history(
    place: Place,
    chunk: OneChunk = None,
    edit: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST,
            help="Show what this edit changed, including everything changed in the same step.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of edits.")] = 20,
    as_json: Json = False,
) -> None:
    """List the edits of rules, newest first.

    Rules changed in one step share a line; --json and a chunk's own history list each.
    """
    from ragfilter.rules.journal_rows import Step

    if chunk is not None and edit is not None:
        raise InputError("A chunk and --edit were both given.", remedy="Pass only one of them.")
    with place.open("rules") as bench:
        bench.collection(place.collection)
        journal = bench.journal
        if edit is not None:
            made = _step(journal, place.collection, edit)
            parts.emit([*map(edit_document, made)] if as_json else "".join(map(_diff, made)))
            return
        if as_json:
            edits = journal.history(place.collection, chunk, limit=limit)
            parts.emit([*map(edit_document, edits)])
            return
        if chunk is None:
            steps = journal.steps(place.collection, limit=limit)
        else:
            edits = journal.history(place.collection, chunk, limit=limit)
            steps = tuple(Step(edit, 1, int(edit.state == "done")) for edit in edits)
    if steps:
        heads = ("edit", "when", "who", "kind", "state", "chunk", "rule")
        parts.emit(table(heads, map(_row, steps)))
    else:
        typer.echo("No rule has been edited yet.", err=True)


def _step(journal: Journal, collection: str, edit_id: int) -> tuple[Edit, ...]:
    """An edit of the collection, with those made together with it. Raises InputError."""
    made = journal.step(edit_id)
    if not made or made[0].collection != collection:
        raise InputError(
            f"{collection} has no edit {edit_id}.", remedy="`ragfilter rules history` lists them."
        )
    return made


def _diff(edit: Edit) -> str:
    return f"{edit.chunk_id}\n- {edit.before or 'no rule'}\n+ {edit.after or 'no rule'}\n"


def _row(step: Step) -> tuple[str, ...]:
    edit = step.edit
    alone = step.size == 1
    return (
        str(edit.id),
        edit.at.isoformat(sep=" ", timespec="seconds"),
        edit.who,
        edit.kind,
        edit.state if step.done in (0, step.size) else f"{step.done} of {step.size} done",
        edit.chunk_id if alone else counted(step.size, "chunk"),
        f"{_short(edit.before)} -> {_short(edit.after)}" if alone else "one step",
    )


def edit_document(edit: Edit) -> dict[str, Any]:
    return asdict(edit) | {"at": edit.at.isoformat()}


def _short(rule: str | None) -> str:
    text = "none" if rule is None else rule
    return text if len(text) <= RULE_CHARS else f"{text[: RULE_CHARS - 1]}…"
