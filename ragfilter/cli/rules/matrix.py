"""`ragfilter rules list` and `matrix`: the chunks with their rules, and what the rules do over many
questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli.access import backends
from ragfilter.cli.app import command
from ragfilter.cli.labelled import QueryOptions
from ragfilter.cli.options import MAX_NUMBER, Filtering, Json, Place, text_argument
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

if TYPE_CHECKING:
    from ragfilter.workbench import Workbench

TITLE_WIDTH = 44
MAX_CROWDING = 10
FIGURES = (
    "queries", "blocks", "passes", "overlap", "conflicts", "precision", "ΔF1 without",
    "Δrecall without", "fires",
)  # fmt: skip


@command(rules, name="list")
def list_(
    place: Place,
    filtering: Filtering,
    measuring: QueryOptions,
    where: Where = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=MAX_NUMBER, help="List only the first N.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List chunks with their rules, most urgent first.

    With --queries also the effect of each rule, and harmful rules before those in doubt.
    """
    user = filtering.viewer
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        visible = {i: chunk for i, chunk in store.entries().items() if user.sees(chunk)}
        _, measured = _measure(measuring, bench, place, filtering)
        harm = {} if measured is None else measured.harm()
        wanted = {*select_ids(bench, place.collection, where, user)}
        listing = list_chunks(user, bench, place.collection, harm).find(RuleFilter())
        rows = [row for row in listing if row.id in wanted]
        incomplete = store.incomplete
    warn(incomplete)
    by_rule = {row.rule: row for row in measured.rules} if measured else {}
    crowding = {row.chunk_id: row for row in measured.crowding} if measured else {}
    documents, body = [], []
    listed = rows[:limit]
    titles = telling_titles([row.chunk.title for row in listed], TITLE_WIDTH)
    for row, title in zip(listed, titles, strict=True):
        chunk = row.chunk
        rule_row, crowd = by_rule.get(chunk.rule or ""), crowding.get(row.id)
        document: dict[str, Any] = {
            "id": row.id, "title": chunk.title, "type": chunk.type, "source": chunk.source,
            "state": row.state, "changed": row.changed, "rule": chunk.rule or None,
            "brief": brief(chunk.rule),
        }  # fmt: skip
        figures: list[object] = []
        if measured is not None:
            document |= {"matrix": rule_row and rule_matrix.row_document(rule_row)}
            document |= {"crowding": crowd}
            figures = [*_figures(rule_row), crowd.kept if crowd else "–"]
        documents.append(document)
        # The rule comes last, since it may be long.
        body.append((", ".join(row.words), row.id, title, *figures, brief(chunk.rule)))
    heads = ("state", "id", "title", *((*FIGURES, "kept wrongly") if measured else ()), "rule")
    first = f", the first {len(body):,} shown" if len(body) < len(rows) else ""
    counts = f"{place.collection}: {len(rows):,} of {counted_chunks(len(visible))}{first}\n"
    head = place.head(incomplete) | {"chunks": len(visible), "found": len(rows)}
    text = (table(heads, body) if body else "") + counts
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
    with place.open("rules") as bench:
        name, result = _measure(measuring, bench, place, filtering, chunk)
        head = place.head(bench.collection(place.collection).incomplete)
    if isinstance(result, Matrix):
        document: Any = rule_matrix.document(result)
        names = [_named(row.chunk_ids) for row in result.rules]
        text = _rows_text(result.rules, "chunks", names) + _matrix_text(result)
    else:
        document = [rule_matrix.row_document(row) for row in result]
        names = [f"{r.place} {shorten(parse(r.rule).written(r.place))}" for r in result]
        text = _rows_text(result, "part", names)
    show(head | {name: document}, f"{name}\n{text}", as_json=as_json)


def _measure(
    measuring: QueryOptions,
    bench: Workbench,
    place: Place,
    filtering: Filtering,
    chunk: str | None = None,
) -> tuple[str, Any]:
    """What the rules do over the named queries, and whether these are ``labelled`` or only a
    ``history``: a matrix or, of one chunk's rule, its parts; None if no queries are named."""
    loaded, user = filtering.load()
    # Gathered with rules applied, so that the pools are large enough for what passes them.
    settings = loaded.settings.with_values({"query_must.enabled": True})
    labels = measuring.read(bench, place.collection, user, bare=True)
    if labels is None:
        return "", None
    catalogue = bench.collection(place.collection).entries()
    rule = None if chunk is None else _rule_of(chunk, catalogue, user)
    pools = measure.gather_all(
        labels.labelled or labels.queries, settings, backends(bench, place.collection), user,
        progress=progress("queries"),
    )  # fmt: skip
    name = "labelled" if labels.qrels else "history"
    args = pools, labels.qrels, catalogue.values(), settings, user
    if rule is None:
        return name, rule_matrix.build_matrix(*args)
    return name, rule_matrix.build_parts(rule, *args)


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
    body = [(name, *_figures(row)) for name, row in zip(names, rows, strict=True)]
    return table((first, *FIGURES), body)


def _figures(row: RuleRow | None) -> tuple[object, ...]:
    """The `FIGURES` of a row."""
    if row is None:
        return ("–",) * len(FIGURES)
    precision = "–" if row.precision is None else f"{row.precision:.2f}"
    gains = ("–" if d is None else signed(d, 4) for d in (row.delta_f1, row.delta_recall))
    return (
        row.queries, row.blocks, row.passes, row.overlap, len(row.conflicts), precision, *gains,
        row.fires,
    )  # fmt: skip


def _named(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"


def row_text(row: RuleRow) -> str:
    """A row of the matrix in short form."""
    figures = [
        counted(row.queries, "query"),
        f"blocks {row.blocks}",
        f"passes {row.passes}",
        counted(len(row.conflicts), "conflict"),
    ]
    if row.delta_f1 is not None and row.delta_recall is not None:
        figures.append(
            f"without it F1 {signed(row.delta_f1, 4)}, recall {signed(row.delta_recall, 4)}"
        )
    return ", ".join(figures)
