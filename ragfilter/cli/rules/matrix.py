"""`ragfilter rules list` and `matrix`: the chunks with their rules, and what the rules do over many
questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.basics.files import read_lines
from ragfilter.cli.access import backends
from ragfilter.cli.app import command
from ragfilter.cli.labelled import Measuring
from ragfilter.cli.options import MOST, Filtering, Json, Place, text_argument, text_option
from ragfilter.cli.output import progress, show, table, tell
from ragfilter.cli.rules.select import list_chunks, rules
from ragfilter.errors import InputError
from ragfilter.evaluate import measure, rule_matrix
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow
from ragfilter.model import Chunk, User
from ragfilter.rules.overview import STORED, ListingRow, RuleFilter, brief
from ragfilter.rules.rule import parse, shorten
from ragfilter.text.numbers import chunks as counted_chunks
from ragfilter.text.numbers import counted, signed
from ragfilter.text.titles import short_title

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings
    from ragfilter.workbench import Workbench

TITLE_WIDTH = 44
MOST_CROWDING = 10
FIGURES = (
    "queries", "blocks", "passes", "overlap", "conflicts", "precision", "ΔF1 without",
    "Δrecall without", "fires",
)  # fmt: skip


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
        visible = [chunk for chunk in store.entries().values() if user.sees(chunk)]
        incomplete = store.incomplete
        measured = _measured(measuring, bench, place, filtering, visible)
        harm = {} if measured is None else measured.harm()
        rows = list_chunks(user, bench, place.collection, harm).find(wanted)
    tell(incomplete)
    shown = rows[:limit]
    document = place.head(incomplete) | {
        "chunks": len(visible),
        "found": len(rows),
        "rows": _listed(shown, measured),
    }
    first = f", the first {len(shown):,} shown" if len(shown) < len(rows) else ""
    counts = f"{place.collection}: {len(rows):,} of {counted_chunks(len(visible))}{first}\n"
    show(document, lambda: _list_text(shown, measured) + counts, as_json=as_json)


def _measured(
    measuring: Measuring,
    bench: Workbench,
    place: Place,
    filtering: Filtering,
    chunks: Iterable[Chunk],
) -> Matrix | None:
    """The matrix of the rules of `chunks` over labelled queries; None if none are named."""
    settings, user = _load(filtering)
    labels = measuring.read(bench, place.collection, user)
    if labels is None:
        return None
    store = backends(bench, place.collection)
    pools = measure.gather_all(labels.labelled, settings, store, user, progress=progress("queries"))
    return rule_matrix.build_matrix(pools, labels.qrels, chunks, settings, user)


def _listed(rows: Sequence[ListingRow], measured: Matrix | None) -> list[dict[str, Any]]:
    documents = []
    rule_rows = {r.rule: rule_matrix.row_document(r) for r in measured.rules} if measured else {}
    crowding = {row.chunk_id: row for row in measured.crowding} if measured else {}
    for row in rows:
        chunk = row.chunk
        document: dict[str, Any] = {
            "id": row.id,
            "title": chunk.title,
            "type": chunk.type,
            "source": chunk.source,
            "state": row.state,
            "changed": row.changed,
            "rule": chunk.rule or None,
            "brief": brief(chunk.rule),
        }
        if measured is not None:
            document["matrix"] = rule_rows.get(chunk.rule or "")
            document["crowding"] = crowding.get(row.id)
        documents.append(document)
    return documents


def _list_text(rows: Sequence[ListingRow], measured: Matrix | None) -> str:
    if not rows:
        return ""
    # The rule comes last, since it may be long.
    heads = ("state", "id", "title", *((*FIGURES, "kept wrongly") if measured else ()), "rule")
    rule_rows = {row.rule: row for row in measured.rules} if measured else {}
    wrong = {row.chunk_id: row.kept for row in measured.crowding} if measured else {}
    body = []
    for row in rows:
        rule = row.chunk.rule
        figures = (*_figures(rule_rows.get(rule or "")), wrong.get(row.id, "–"))
        title = short_title(row.chunk.title, TITLE_WIDTH)
        body.append(
            (", ".join(row.words), row.id, title, *(figures if measured else ()), brief(rule))
        )
    return table(heads, body)


@command(rules)
def matrix(
    place: Place,
    filtering: Filtering,
    measuring: Measuring,
    chunk: Annotated[
        str | None,
        text_argument(metavar="CHUNK", help="Show only this chunk's rule, by group and term."),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Text file of unlabelled questions, one per line, or `asked` for those asked of "
            "the collection. They are counted separately."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the effect of every rule over many questions, most harmful rule first."""
    if measuring.queries is None and questions is None:
        raise InputError("--queries is missing.", remedy="Pass labelled queries, or --questions.")
    settings, user = _load(filtering)
    results: dict[str, Matrix | tuple[RuleRow, ...]] = {}
    with place.open("rules") as bench:
        unlabelled = {} if questions is None else _unlabelled(questions, bench, place.collection)
        store = backends(bench, place.collection)
        catalogue = bench.collection(place.collection).entries()
        labels = measuring.read(bench, place.collection, user)
        rule = None if chunk is None else _rule_of(chunk, catalogue, user)
        sets: dict[str, tuple[Mapping[str, str], Any]] = {}
        if labels is not None:
            sets["labelled"] = labels.labelled, labels.qrels
        if unlabelled:
            sets["history"] = unlabelled, {}
        for name, (texts, qrels) in sets.items():
            pools = measure.gather_all(
                texts, settings, store, user, progress=progress(f"{name} questions")
            )
            args = pools, qrels, catalogue.values(), settings, user
            results[name] = (
                rule_matrix.build_matrix(*args)
                if rule is None
                else rule_matrix.build_parts(rule, *args)
            )
        head = place.head(store.incomplete)
    documents = {
        name: [rule_matrix.row_document(row) for row in result]
        if isinstance(result, tuple)
        else rule_matrix.document(result)
        for name, result in results.items()
    }
    text = "\n".join(f"{name}\n{_matrix_text(result)}" for name, result in results.items())
    show(head | documents, text, as_json=as_json)


def _unlabelled(questions: Path, bench: Workbench, collection: str) -> Mapping[str, str]:
    """The questions of a file by line, or all that were asked. Raises InputError if there are
    none."""
    from ragfilter.stores.labels import ASKED

    if str(questions) == ASKED:
        texts = bench.labels.queries(collection, ASKED)
        if not texts:
            raise InputError(
                f"No question has been asked of {collection} yet.",
                remedy="Ask some in the app, or pass a file of questions.",
            )
        return texts
    lines = enumerate(read_lines(questions), start=1)
    texts = {str(number): line for number, line in lines if line.strip()}
    if not texts:
        raise InputError(f"{questions} has no questions.", remedy="Write one question per line.")
    return texts


def _rule_of(chunk_id: str, catalogue: Mapping[str, Chunk], user: User) -> str:
    if chunk_id not in catalogue or not user.sees(catalogue[chunk_id]):
        raise InputError(f"There is no chunk {chunk_id!r}.", remedy="Check its id.")
    rule = catalogue[chunk_id].rule
    if not rule:
        raise InputError(f"The chunk {chunk_id!r} has no rule.", remedy="Name another.")
    return rule


def _load(filtering: Filtering) -> tuple[Settings, User]:
    loaded, user = filtering.load()
    # Gathered with rules applied, so that the pools are large enough for what passes them.
    return loaded.settings.with_values({"query_must.enabled": True}), user


def _matrix_text(result: Matrix | tuple[RuleRow, ...]) -> str:
    if isinstance(result, tuple):
        parts = [f"{row.place} {shorten(parse(row.rule).written(row.place))}" for row in result]
        return _rows_text(result, "part", parts)
    names = [_named(row.chunk_ids) for row in result.rules]
    text = _rows_text(result.rules, "chunks", names)
    if result.crowding:
        first = result.crowding[:MOST_CROWDING]
        body = [(row.chunk_id, row.retrieved, row.irrelevant, row.kept) for row in first]
        text += f"\n{table(('without a rule', 'retrieved', 'irrelevant', 'kept wrongly'), body)}"
        if len(result.crowding) > len(first):
            text += f"and {len(result.crowding) - len(first)} more\n"
    waiting = (
        f", {result.waiting} fell back for lack of scores or verdicts" if result.waiting else ""
    )
    figures = f"{counted(len(result.rules), 'rule')} over {counted(result.queries, 'question')}"
    return f"{text}{figures}{waiting}\n"


def _rows_text(rows: Sequence[RuleRow], first: str, names: Sequence[str]) -> str:
    body = [(name, *_figures(row)) for name, row in zip(names, rows, strict=True)]
    return table((first, *FIGURES), body)


def _figures(row: RuleRow | None) -> tuple[object, ...]:
    """The `FIGURES` of a row."""
    if row is None:
        return ("–",) * len(FIGURES)
    return (
        row.queries,
        row.blocks,
        row.passes,
        row.overlap,
        len(row.conflicts),
        "–" if row.precision is None else f"{row.precision:.2f}",
        _gain(row.delta_f1),
        _gain(row.delta_recall),
        row.fires,
    )


def _named(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"


def _gain(value: float | None) -> str:
    return "–" if value is None else signed(value, 4)
