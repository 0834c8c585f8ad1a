"""`ragfilter runs`: runs saved by `eval --save`, as text or JSON, and traces. Source: docs/design.md#evaluate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from ragfilter.cli import options, output
from ragfilter.cli.options import MAX_NUMBER, DataDir, Place, Text
from ragfilter.cli.output import percent, table, text_of
from ragfilter.cli.program import command, make_group
from ragfilter.evaluate import frame, query_sets, wording
from ragfilter.evaluate import measured_runs as saved_runs
from ragfilter.evaluate.frame import PairedTest, Row, cells, interval_of
from ragfilter.evaluate.metrics import FIGURES
from ragfilter.evaluate.query_files import matched, read_traces
from ragfilter.evaluate.query_records import QueryRecord
from ragfilter.protocols import Prices
from ragfilter.text.numbers import counted, money, p_value, signed
from ragfilter.text.titles import query_id, query_name
from ragfilter.workbench import Workbench

runs = make_group("runs")

QUERY_WIDTH, CHANGES = 34, 10
RunId = Annotated[int, typer.Argument(metavar="RUN", min=1, max=MAX_NUMBER, help="Number of the run.")]


@command(runs, "list", json=True)
def list_(
    collection: Annotated[Text, "--collection", "-c", "List only this collection's runs."] = None,
    data_dir: DataDir = None,
) -> None:
    """List the saved runs, newest first."""
    with options.open_for(data_dir, "runs") as bench:
        saved = bench.runs.saved(collection)
    rows = [
        (
            run.id,
            run.name,
            f"{run.at.astimezone():%Y-%m-%d %H:%M}",
            run.plan.collection,
            run.plan.query_set,
            saved_runs.settings_name(run),
            f"{run.done} of {run.plan.queries}",
        )
        for run in saved
    ]
    names = ("run", "name", "date", "collection", "queries", "settings", "done")
    where = f" of {collection}" if collection else ""
    none = f"There are no runs{where} yet. `ragfilter eval --save NAME` makes one."
    output.show(saved, output.table(names, rows) if saved else none)


@command(runs, "import", json=True)
def import_(
    place: Place,
    traces: Annotated[Path, typer.Argument(help="JSON lines: OTLP, or spans from Phoenix.")],
    name: Annotated[str, "Name of the query set. Default: the file's name."] = "",
    replace: Annotated[bool, "Replace a set of this name."] = False,
) -> None:
    """Import questions and retrieved chunks from traces as a query set. Inspect can filter them with other settings."""
    recordings, set_name = read_traces(traces), name or traces.stem
    with place.open("runs") as bench:
        store = bench.collection(place.collection)
        chunks = store.chunks([*store.entries()]).values()
        texts = {chunk.text.strip(): chunk.id for chunk in chunks}
        hits = {query: matched(documents, texts) for query, documents in recordings.items()}
        query_sets.import_set(
            bench.labels,
            place.collection,
            set_name,
            {query_id(query): query for query in recordings},
            (),
            (),
            who="",
            replace=replace,
            otherwise="Choose another --name, or replace it with --replace.",
        )
        bench.labels.record(place.collection, {query: ids for query, ids in hits.items() if ids})
    total, known = sum(map(len, recordings.values())), sum(map(len, hits.values()))
    if known < total:
        output.warn(f"{counted(total - known, 'hit')} not in the collection, by id or text.")
    counts = f"{counted(len(recordings), 'query')}, {counted(known, 'recorded hit')}"
    output.show(
        {"set": set_name, "queries": len(recordings), "hits": known, "unknown_hits": total - known},
        f"{place.collection}: query set {set_name} with {counts}",
    )


@command(runs, json=True)
def show(
    run: RunId,
    against: Annotated[
        int | None, "Compare with this run as side A, query by query.", {"metavar": "RUN", "min": 1, "max": MAX_NUMBER}
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Show the table of a run, or its comparison with another run."""
    with options.open_for(data_dir, "runs") as bench:
        measured = saved_runs.load(bench.runs.get(run), bench.runs)
        if against is None:
            output.show(*shown(measured, bench))
            return
        other = saved_runs.load(bench.runs.get(against), bench.runs)
        compared = saved_runs.compare(other, measured, bench)
    a, b = compared.runs
    output.show(
        {"a": a, "b": b, "paired": compared.paired, "changes": cells(compared.sides), "notes": compared.notes},
        paired_text(compared.paired, compared.sides, f"run {a.id} (A)", f"run {b.id} (B)"),
        *compared.notes,
    )


@command(runs)
def remove(run: RunId, data_dir: DataDir = None) -> None:
    """Delete a run."""
    with options.open_for(data_dir, "runs") as bench:
        bench.runs.remove(run)
    output.emit(f"Run {run} is removed.\n")


def shown(measured: saved_runs.MeasuredRun, bench: Workbench) -> tuple[dict[str, Any], str]:
    """A run as a document and as text."""
    run, rows = measured.run, cells(measured.rows)
    gain, queries = measured.over_fixed_k, measured.questions.sort_index()
    notes = [*saved_runs.changed_since(run.plan, bench), *wording.about_records(measured.records, measured.variants)]
    document = {
        "run": run,
        "with_llm": query_sets.untitled(run.plan.query_set)[2],
        "gain_over_fixed_k": gain,
        "rows": rows,
        "per_query": cells(queries),
        "notes": [*filter(None, [measured.in_sample]), *notes],
    }
    text = (
        f"run {run.id}{run.name and f', {run.name}'}: {run.plan.collection}, {run.plan.query_set}, "
        f"{saved_runs.settings_name(run)}, {run.done} of {counted(run.plan.queries, 'query')}\n"
    )
    sentences = [wording.over_fixed_k(measured.over_fixed_k, measured.in_sample), *notes]
    text += "".join(f"{each}\n" for each in sentences if each) + "\n"
    return document, f"{text}{rows_text(rows, bench.prices)}\n" if rows else text


def rows_text(rows: Sequence[Row], prices: Prices | None = None, measure: str = "f1") -> str:
    """The rows as text: means, with an interval for `measure`."""
    columns: dict[str, Callable[[Row], str]] = {"": lambda row: row["variant"]}
    for figure, spec in FIGURES.items():
        if "eval" in spec.tables and figure in rows[0]:
            columns[figure if spec.label.lower() == figure else spec.label] = partial(_mean, figure)
        if figure == measure:
            columns[f"95% of {measure}"] = partial(_ends, measure)
    if "noise_reduction" in rows[0]:
        columns["noise cut"] = lambda row: percent(row["noise_reduction"])
    if prices:
        columns["cost of 1,000"] = lambda row: money(prices.of_thousand(row["tokens"]), prices.currency)
    if any(row.get("llm_tokens") for row in rows):
        columns["LLM tokens"] = lambda row: f"{row['llm_tokens']:,.0f}"
        columns["LLM ms"] = lambda row: f"{row['llm_ms']:,.0f}"
        columns["fallbacks"] = lambda row: str(row["fallbacks"])
    if any(row.get("query_ms") for row in rows):
        columns["whole query ms"] = lambda row: f"{row['query_ms']:,.0f}"
    if "gain" in rows[0]:
        columns["gain in F1"] = _gain
        columns["p"] = lambda row: p_value(row["p_value"]) if row["gain"] else "–"
    body = [[cell(row) for cell in columns.values()] for row in rows]
    about = "".join(f"{row['variant']}: {row['about']}\n" for row in rows if row.get("about"))
    return table([*columns], body) + about


def questions_text(questions: pd.DataFrame) -> str:
    """The figures of each query under the run's own settings; see `frame.questions`."""
    heads = ("query", "lost", "F1", "against unfiltered", "P", "R", "kept", "relevant", "unlabelled")
    return table(
        heads,
        [
            (
                query_name(row["id"], row["query"], QUERY_WIDTH),
                row["lost"],
                f"{row['f1']:.3f}",
                signed(row["gain"]),
                f"{row['precision']:.3f}",
                f"{row['recall']:.3f}",
                row["kept"],
                row["relevant"],
                f"{row['unlabelled']:.0f}",
            )
            for row in cells(questions)
        ],
    )


def paired_text(pairs: PairedTest, sides: pd.DataFrame, a: str, b: str) -> str:
    """Two sides as text, with the queries that changed most."""
    if not pairs.queries:
        return "The two sides have no queries in common.\n"
    return text_of(
        f"{b} against {a}, F1: {pairs.wins} better, {pairs.losses} worse, {pairs.ties} the same",
        f"mean {wording.gain(pairs.gain)}, {p_value(pairs.p_value)} (paired permutation test)",
        *(
            f"  {signed(row['gain'])}  {query_name(row['id'], row['query'], QUERY_WIDTH)}"
            for row in cells(frame.most_changed(sides))[:CHANGES]
            if row["gain"]
        ),
    )


def several_text(
    records: Sequence[QueryRecord], rows: pd.DataFrame, reference: str, prices: Prices | None, *, each_query: bool
) -> str:
    """The `rows` of variants as text, compared with `reference`. `each_query` adds the queries that changed most."""
    if rows.empty:
        return ""
    text = f"{rows_text(cells(rows), prices)}gain: over {reference}.\n"
    if not each_query:
        return text
    sides = frame.by_variant(frame.frame(records, by="query"))
    for row in cells(rows[rows["group"] == "settings"]):
        if row["variant"] != reference:
            both = frame.side_by_side(sides[reference], sides[row["variant"]])
            pairs = frame.paired(both)
            if pairs.queries:
                text += "\n" + paired_text(pairs, both, reference, row["variant"])
    return text


def _gain(row: Row) -> str:
    gain = interval_of(row, "gain")
    return wording.gain(gain) if gain and gain.mean else "–"


def _mean(figure: str, row: Row) -> str:
    return "–" if row[figure] is None else frame.written(figure, row[figure])


def _ends(figure: str, row: Row) -> str:
    interval = interval_of(row, figure)
    return wording.between_ends(interval, partial(frame.written, figure), " – ") if interval else "–"
