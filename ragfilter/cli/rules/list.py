"""`ragfilter rules list`: every chunk with a short form of its rule and the rule's state, as on the
Rules page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.labelled import Measuring
from ragfilter.cli.options import MOST, Filtering, Json, Place, text_option
from ragfilter.cli.output import table
from ragfilter.cli.rules.group import rules
from ragfilter.cli.rules.matrix import FIGURES, figures, measured
from ragfilter.cli.rules.select import list_chunks
from ragfilter.errors import InputError
from ragfilter.evaluate.rule_matrix import Matrix, row_document
from ragfilter.rules.overview import STORED, ListingRow, RuleFilter, brief
from ragfilter.text.numbers import chunks as counted_chunks
from ragfilter.text.titles import short_title

TITLE_WIDTH = 44


@command(rules, name="list")
def list_(
    place: Place,
    filtering: Filtering,
    measuring: Measuring,
    text: Annotated[
        str,
        text_option(
            help="List only chunks with all of these words in title, id, type, source or rule."
        ),
    ] = "",
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            help="List only chunks in this state: invalid (cannot work), warning (questioned by "
            "the linter), none (no rule), note (the linter can improve it), valid, or changed "
            "(edited since the last export, or ever if there was none). Repeatable; the states are "
            "alternatives.",
        ),
    ] = None,
    types: Annotated[
        list[str] | None, text_option("--type", help="List only chunks of this type. Repeatable.")
    ] = None,
    sources: Annotated[
        list[str] | None,
        text_option("--source", help="List only chunks from this file. Repeatable."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="List only the first N.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List chunks with their rules, most urgent first.

    With --queries also the effect of each rule, and harmful rules before those in doubt.
    """
    user = filtering.viewer
    unknown = next((state for state in states or () if state not in STORED), None)
    if unknown is not None:
        raise InputError(
            f"--state {unknown!r} is not a state.", remedy=f"Use one of {', '.join(STORED)}."
        )
    wanted = RuleFilter(text, tuple(types or ()), tuple(sources or ()), tuple(states or ()))
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        seen = [chunk for chunk in store.entries().values() if user.sees(chunk)]
        incomplete = store.incomplete
        made = measured(measuring, bench, place, filtering, seen)
        harm = {} if made is None else made.harm()
        found = list_chunks(user, bench, place.collection, harm).find(wanted)
    parts.tell(incomplete)
    shown = found[:limit]
    document = place.head(incomplete) | {"chunks": len(seen), "found": len(found)}
    document["rows"] = _documents(shown, made)
    counts = f"{len(found):,} of {counted_chunks(len(seen))}"
    first = f", the first {len(shown):,} shown" if len(shown) < len(found) else ""
    text = f"{_text(shown, made)}{place.collection}: {counts}{first}\n"
    parts.emit(document if as_json else text)


def _documents(rows: Sequence[ListingRow], made: Matrix | None) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = [
        {
            "id": row.id,
            "title": row.chunk.title,
            "type": row.chunk.type,
            "source": row.chunk.source,
            "state": row.state,
            "changed": row.changed,
            "rule": row.chunk.rule or None,
            "brief": brief(row.chunk.rule),
        }
        for row in rows
    ]
    if made is None:
        return documents
    of_rule = {one.rule: row_document(one) for one in made.rules}
    crowding = {one.chunk_id: asdict(one) for one in made.crowding}
    for row, document in zip(rows, documents, strict=True):
        document["matrix"] = of_rule.get(row.chunk.rule or "")
        document["crowding"] = crowding.get(row.id)
    return documents


def _text(rows: Sequence[ListingRow], made: Matrix | None) -> str:
    if not rows:
        return ""
    head: tuple[str, ...] = ("state", "id", "title", "rule")
    body: list[tuple[str, ...]] = [
        (
            ", ".join(row.words),
            row.id,
            short_title(row.chunk.title, TITLE_WIDTH),
            brief(row.chunk.rule),
        )
        for row in rows
    ]
    if made is not None:
        of_rule = {one.rule: one for one in made.rules}
        kept = {one.chunk_id: str(one.kept) for one in made.crowding}
        # Before the rule, which may be long.
        head = (*head[:-1], *FIGURES, "kept wrongly", head[-1])
        body = [
            (*line, *figures(of_rule.get(row.chunk.rule or "")), kept.get(row.id, "–"), rule)
            for row, (*line, rule) in zip(rows, body, strict=True)
        ]
    return table(head, body)
