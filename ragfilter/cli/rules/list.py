"""`ragfilter rules list`: every chunk with a short form of its rule and the rule's state, as on the
Rules page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import MOST, Json, Place, Viewing, in_words
from ragfilter.cli.rules.group import rules
from ragfilter.cli.rules.select import Selection
from ragfilter.cli.table import table
from ragfilter.errors import InputError
from ragfilter.report import short_title
from ragfilter.rules.overview import STATES, Checks, Filter, Row, brief, make_listing
from ragfilter.text.numbers import chunks as counted_chunks

TITLE_WIDTH = 44


@command(rules, name="list")
def list_(
    place: Place,
    viewing: Viewing,
    text: Annotated[
        str,
        typer.Option(
            help="List only chunks with all of these words in title, id, type, source or rule.",
            callback=in_words,
        ),
    ] = "",
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            help="List only chunks in this state: invalid (cannot work), warning (questioned by "
            "the linter), none (no rule), valid, or changed (edited since the last export, or "
            "ever if there was none). Repeatable; the states are alternatives.",
        ),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", help="List only chunks of this type. Repeatable.", callback=in_words
        ),
    ] = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--source", help="List only chunks from this file. Repeatable.", callback=in_words
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="List only the first N.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List chunks with their rules, most urgent first."""
    user = viewing.viewer

    known = (*STATES, "changed")
    unknown = next((state for state in states or () if state not in known), None)
    if unknown is not None:
        raise InputError(
            f"--state {unknown!r} is not a state.", remedy=f"Use one of {', '.join(known)}."
        )
    wanted = Filter(text, tuple(types or ()), tuple(sources or ()), tuple(states or ()))
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        every = store.entries().values()
        seen = [chunk for chunk in every if user.sees(chunk)]
        exported = bench.journal.edited_since_export(place.collection)
        incomplete = store.incomplete
    parts.tell(Selection((), len(every) - len(seen), incomplete).notice)
    found = make_listing(seen, Checks(), exported=exported).find(wanted)
    shown = found[:limit]
    if as_json:
        document = place.head(incomplete) | {"chunks": len(seen), "found": len(found)}
        rows = [_document(row) for row in shown]
        parts.emit(parts.dumps(document | {"rows": rows}))
    else:
        parts.emit(_text(shown))
        figures = f"{len(found):,} of {counted_chunks(len(seen))}"
        first = f", the first {len(shown):,} shown" if len(shown) < len(found) else ""
        parts.emit(f"{place.collection}: {figures}{first}\n")


def _document(row: Row) -> dict[str, Any]:

    chunk = row.chunk
    return {
        "id": row.id,
        "title": chunk.title,
        "type": chunk.type,
        "source": chunk.source,
        "state": row.state,
        "changed": row.changed,
        "rule": chunk.rule or None,
        "brief": brief(chunk.rule),
    }


def _text(rows: Sequence[Row]) -> str:

    if not rows:
        return ""
    body = (
        (row.words, row.id, short_title(row.chunk.title, TITLE_WIDTH), brief(row.chunk.rule))
        for row in rows
    )
    return table(("state", "id", "title", "rule"), body)
