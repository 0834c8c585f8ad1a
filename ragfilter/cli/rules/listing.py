"""`ragfilter rules list` and `matrix`: the chunks with their rules, and what rules do to
questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ragfilter.cli.access import backends
from ragfilter.cli.app import command
from ragfilter.cli.labelled import QueryOptions
from ragfilter.cli.options import (
    MAX_NUMBER,
    Filtering,
    Json,
    Place,
    Viewing,
    text_argument,
)
from ragfilter.cli.output import progress, show, table, warn
from ragfilter.cli.rules.select import Where, list_chunks, rules, select_ids
from ragfilter.errors import InputError
from ragfilter.evaluate import measure, rule_matrix
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow
from ragfilter.model import Chunk, User
from ragfilter.rules.overview import RuleFilter, brief
from ragfilter.rules.rule import parse, shorten
from ragfilter.text.numbers import chunks as counted_chunks
from ragfilter.text.numbers import counted, signed
from ragfilter.text.titles import telling_titles

TITLE_WIDTH = 44
MAX_CROWDING = 10
FIGURES = (
    "queries", "blocks", "passes", "overlap", "conflicts", "precision", "ΔF1 without",
    "Δrecall without", "fires",
)  # fmt: skip


@command(rules, name="list")
def list_(
    place: Place,
    viewing: Viewing,
    where: Where = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=MAX_NUMBER, help="List only the first N.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List chunks with their rules, most urgent first."""
    user = viewing.viewer
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        visible = sum(user.sees(chunk) for chunk in store.entries().values())
        wanted = {*select_ids(bench, place.collection, where, user)}
        listing = list_chunks(user, bench, place.collection).find(RuleFilter())
        incomplete = store.incomplete
    warn(incomplete)
    rows = [row for row in listing if row.id in wanted]
    listed = rows[:limit]
    documents = [
        {"id": row.id, "title": row.chunk.title, "type": row.chunk.type,
         "source": row.chunk.source, "state": row.state, "changed": row.changed,
         "rule": row.chunk.rule or None, "brief": brief(row.chunk.rule)}
        for row in listed
    ]  # fmt: skip
    titles = telling_titles([row.chunk.title for row in listed], TITLE_WIDTH)
    # The rule comes last, since it may be long.
    body = [
        (", ".join(row.words), row.id, title, brief(row.chunk.rule))
        for row, title in zip(listed, titles, strict=True)
    ]
    first = f", the first {len(body):,} shown" if len(body) < len(rows) else ""
    counts = f"{place.collection}: {len(rows):,} of {counted_chunks(visible)}{first}\n"
    head = place.head(incomplete) | {"chunks": visible, "found": len(rows)}
    text = (table(("state", "id", "title", "rule"), body) if body else "") + counts
    show(head | {"rows": documents}, text, as_json=as_json)


@command(rules)
def matrix(
    place: Place,
    filtering: Filtering,
    measuring: QueryOptions,
    chunk: Annotated[
        str | None,
        text_argument(metavar="CHUNK", help="Show only this chunk's rule, by group and term."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the effect of every rule over many questions, most harmful rule first.

    Questions without labels count if none of them has any.
    """
    if measuring.queries is None:
        raise InputError("--queries is missing.", remedy="Pass queries, such as --queries asked.")
    loaded, user = filtering.load()
    # Gathered with rules applied, so that the pools are large enough for what passes them.
    settings = loaded.settings.with_values({"query_must.enabled": True})
    with place.open("rules") as bench:
        labels = measuring.read(bench, place.collection, user, bare=True)
        assert labels is not None
        store = bench.collection(place.collection)
        catalogue, head = store.entries(), place.head(store.incomplete)
        rule = None if chunk is None else _rule_of(chunk, catalogue, user)
        pools = measure.gather_all(
            labels.labelled or labels.queries, settings, backends(bench, place.collection), user,
            progress=progress("queries"),
        )  # fmt: skip
    questions = pools, labels.qrels, catalogue.values(), settings, user
    if rule is None:
        result = rule_matrix.build_matrix(*questions)
        document: Any = rule_matrix.document(result)
        names = [_named(row.chunk_ids) for row in result.rules]
        text = _rows_text(result.rules, "chunks", names) + _matrix_text(result)
    else:
        rows = rule_matrix.build_parts(rule, *questions)
        document = [rule_matrix.row_document(row) for row in rows]
        names = [f"{r.place} {shorten(parse(r.rule).written(r.place))}" for r in rows]
        text = _rows_text(rows, "part", names)
    name = "labelled" if labels.qrels else "history"
    show(head | {name: document}, f"{name}\n{text}", as_json=as_json)


def _rule_of(chunk_id: str, catalogue: Mapping[str, Chunk], user: User) -> str:
    if chunk_id not in catalogue or not user.sees(catalogue[chunk_id]):
        raise InputError(f"There is no chunk {chunk_id!r}.", remedy="Check its id.")
    rule = catalogue[chunk_id].rule
    if not rule:
        raise InputError(f"The chunk {chunk_id!r} has no rule.", remedy="Name another.")
    return rule


def _matrix_text(result: Matrix) -> str:
    """What is below the rows of a matrix."""
    text = ""
    if result.crowding:
        first = result.crowding[:MAX_CROWDING]
        body = [(row.chunk_id, row.retrieved, row.irrelevant, row.kept) for row in first]
        text = f"\n{table(('without a rule', 'retrieved', 'irrelevant', 'kept wrongly'), body)}"
        if len(result.crowding) > len(first):
            text += f"and {len(result.crowding) - len(first)} more\n"
    waiting = f", {result.waiting} fell back" if result.waiting else ""
    figures = f"{counted(len(result.rules), 'rule')} over {counted(result.queries, 'question')}"
    return f"{text}{figures}{waiting}\n"


def _rows_text(rows: Sequence[RuleRow], first: str, names: Sequence[str]) -> str:
    body = []
    for name, row in zip(names, rows, strict=True):
        precision = "–" if row.precision is None else f"{row.precision:.2f}"
        gains = ("–" if d is None else signed(d, 4) for d in (row.delta_f1, row.delta_recall))
        body.append((name, row.queries, row.blocks, row.passes, row.overlap, len(row.conflicts),
                     precision, *gains, row.fires))  # fmt: skip
    return table((first, *FIGURES), body)


def _named(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"
