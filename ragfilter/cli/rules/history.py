"""`ragfilter rules history`: the edits of rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import MOST, Json, Place
from ragfilter.cli.rules.group import OneChunk, rules
from ragfilter.cli.table import table

if TYPE_CHECKING:
    from ragfilter.rules.journal_rows import Edit

RULE_CHARS = 60


@command(rules)
def history(
    place: Place,
    chunk: OneChunk = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number of edits.")] = 20,
    as_json: Json = False,
) -> None:
    """List the edits of rules, newest first."""
    with place.open("rules") as bench:
        bench.collection(place.collection)
        found = bench.journal.history(place.collection, chunk, limit=limit)
    if as_json:
        parts.emit(parts.dumps([edit_document(edit) for edit in found]))
    elif found:
        parts.emit(history_text(found))
    else:
        typer.echo("No rule has been edited yet.", err=True)


def history_text(edits: Sequence[Edit]) -> str:
    body = [
        (
            str(edit.id),
            edit.at.isoformat(sep=" ", timespec="seconds"),
            edit.who,
            edit.kind,
            edit.state,
            edit.chunk_id,
            f"{_short(edit.before)} -> {_short(edit.after)}",
        )
        for edit in edits
    ]
    return table(("edit", "when", "who", "kind", "state", "chunk", "rule"), body)


def edit_document(edit: Edit) -> dict[str, Any]:
    return asdict(edit) | {"at": edit.at.isoformat()}


def _short(rule: str | None) -> str:
    text = "none" if rule is None else rule
    return text if len(text) <= RULE_CHARS else f"{text[: RULE_CHARS - 1]}…"
