"""The command group `ragfilter runs`: runs saved by `eval --save`, and traces. Source: docs/design.md#evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.cli import options, output, results
from ragfilter.cli.app import command, make_group
from ragfilter.cli.options import MAX_NUMBER, DataDir, Place, Text
from ragfilter.evaluate import query_sets, wording
from ragfilter.evaluate import runs as saved_runs
from ragfilter.evaluate.query_files import matched, read_traces
from ragfilter.text.numbers import counted
from ragfilter.text.titles import query_id
from ragfilter.workbench import Workbench

runs = make_group("runs")

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
        {
            "a": a,
            "b": b,
            "paired": compared.paired,
            "changes": results.documents(compared.sides),
            "notes": compared.notes,
        },
        results.paired_text(compared.paired, compared.sides, f"run {a.id} (A)", f"run {b.id} (B)"),
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
    run, rows = measured.run, measured.rows
    gain, queries = measured.over_fixed_k, measured.questions.sort_index()
    notes = [*saved_runs.changed_since(run.plan, bench), *wording.about_records(measured.records, measured.variants)]
    document = {
        "run": run,
        "with_llm": query_sets.untitled(run.plan.query_set)[2],
        "gain_over_fixed_k": gain,
        "rows": results.documents(rows),
        "per_query": results.documents(queries),
        "notes": [*filter(None, [measured.in_sample]), *notes],
    }
    text = (
        f"run {run.id}{run.name and f', {run.name}'}: {run.plan.collection}, {run.plan.query_set}, "
        f"{saved_runs.settings_name(run)}, {run.done} of {counted(run.plan.queries, 'query')}\n"
    )
    sentences = [wording.over_fixed_k(measured.over_fixed_k, measured.in_sample), *notes]
    text += "".join(f"{each}\n" for each in sentences if each) + "\n"
    return document, text if rows.empty else f"{text}{results.rows_text(rows, bench.prices)}\n"
