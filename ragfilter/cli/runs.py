"""The command group `ragfilter runs`: measure settings side by side, and read the results.

Source: docs/design.md#evaluate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command, make_group
from ragfilter.cli.labelled import LabelledOptions, warn_of
from ragfilter.cli.options import (
    MOST,
    SET_HELP,
    DataDir,
    Filtering,
    Json,
    Place,
    QrelsFile,
    WithLlm,
    text_option,
)
from ragfilter.cli.output import table as columns
from ragfilter.cli.sides import paired_text
from ragfilter.evaluate import kinds, paired, told
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.kinds import Kind, QuestionRow
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.table import (
    ABOUT_LAYERS,
    MEASURES,
    Row,
    cost,
    figures_of,
    layer_gains,
    over_fixed_k,
    table,
)
from ragfilter.evaluate.variants import IN_FORCE, UNFILTERED, unmeasured
from ragfilter.text.numbers import counted, money, signed
from ragfilter.text.query_id import query_name

if TYPE_CHECKING:
    from ragfilter.answer.stream import Prices
    from ragfilter.stores.runs import Run
    from ragfilter.workbench import Workbench

QUERY_WIDTH = 60
LOST = 10
SHOWN = ("precision", "recall", "f1", "f2", "ndcg")
FORMS = dict.fromkeys(SHOWN, ".3f") | {"chunks": ".1f", "tokens": ",.0f", "ms": ".1f"}

runs = make_group(
    "runs", "Measure settings over labelled queries; list, show, compare and remove saved runs."
)

RunId = Annotated[int, typer.Argument(metavar="RUN", min=1, max=MOST, help="Number of the run.")]
OtherId = Annotated[
    int,
    typer.Argument(metavar="OTHER", min=1, max=MOST, help="Number of the run to compare it with."),
]
Queries = Annotated[str, text_option("--queries", help=SET_HELP)]


@command(runs)
def new(
    place: Place,
    filtering: Filtering,
    queries: Queries = "labelled",
    qrels: QrelsFile = None,
    llm: WithLlm = False,
    as_json: Json = False,
) -> None:
    """Measure the settings against every strategy, every profile, the best fixed k and the oracle.

    To continue a run that was stopped (Ctrl+C), give the same command again.
    """
    loaded, user = filtering.load()
    from ragfilter.evaluate import runs as running
    from ragfilter.evaluate import stored

    labelled = LabelledOptions(queries=queries, qrels=qrels, llm=llm)
    with labelled.open("runs", place, user) as (bench, backends, labels, _):
        warn_of(labels)
        name = stored.title(queries, llm=llm, qrels=qrels)
        plan = running.plan(labels, name, loaded.profile, loaded.settings, backends, user)
        run = bench.runs.begin(plan, who=bench.deployment.user)
        bar = parts.progress("queries")
        running.go_on(run, labels, bench.runs, backends, seen=bar)
        incomplete = backends.incomplete
        document, text = _shown(bench.runs.get(run.id), bench)
    parts.emit(document | {"incomplete": incomplete} if as_json else text)


@command(runs, "list")
def list_(
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="List only this collection's runs.")
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """List the saved runs, newest first."""
    with parts.open_for(data_dir, "runs") as bench:
        found = bench.runs.saved(collection)
    if as_json:
        parts.emit([head(run) for run in found])
    elif not found:
        where = f" of {collection}" if collection else ""
        parts.emit(f"There are no runs{where} yet. `ragfilter runs new` makes one.\n")
    else:
        rows = [
            (str(run.id), f"{run.at.astimezone():%Y-%m-%d %H:%M}", run.plan.collection,
             run.plan.query_set, _settings(run), f"{run.done} of {run.plan.queries}")
            for run in found
        ]  # fmt: skip
        names = ("run", "date", "collection", "queries", "settings", "done")
        parts.emit(columns(names, rows))


@command(runs)
def show(
    run: RunId,
    only: Annotated[
        Kind | None, typer.Option(help=f"Show only these queries. {kinds.ABOUT}")
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Show the 95% interval of every measure.")
    ] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show the table of a run, or some of its queries."""
    from ragfilter.evaluate.runs import records_of

    if only is not None and not as_json:
        parts.refuse_beside("--only", intervals=intervals)
    with parts.open_for(data_dir, "runs") as bench:
        found = bench.runs.get(run)
        document, text = _shown(found, bench, intervals=intervals)
        rows = kinds.rows(records_of(found, bench.runs))
    if only is not None:
        rows = kinds.only(rows, only)
        figures = {each["id"]: each for each in document["per_query"]}
        document |= {"per_query": [figures[row.id] for row in rows]}
        text = _queries_text(rows, only)
    parts.emit(document if as_json else text)


@command(runs)
def remove(run: RunId, data_dir: DataDir = None) -> None:
    """Delete a run."""
    with parts.open_for(data_dir, "runs") as bench:
        bench.runs.remove(run)
    parts.emit(f"Run {run} is removed.\n")


@command(runs)
def compare(run: RunId, other: OtherId, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Compare the settings of two runs, query by query, with a paired permutation test."""
    from ragfilter.evaluate.matching import duel
    from ragfilter.evaluate.runs import changed_since, records_of, settings_of

    with parts.open_for(data_dir, "runs") as bench:
        sides = [bench.runs.get(number) for number in (run, other)]
        records = [records_of(each, bench.runs) for each in sides]
        since = [changed_since(each.plan, bench.collection, bench.labels) for each in sides]
    made = duel(records[0], IN_FORCE, records[1], IN_FORCE)
    notes = told.between(sides, made, (settings_of(sides[0]), settings_of(sides[1])), since)
    heads = {
        letter: head(each) | {name: made.mean(name, side) for name in ("f1", "f1_most")}
        for side, (letter, each) in enumerate(zip("ab", sides, strict=True))
    }
    names = {each.id: _name(each) for side in records for each in side}
    text = paired_text(made.paired, f"run {run} (A)", f"run {other} (B)", names)
    text += "".join(f"{note}\n" for note in notes)
    parts.emit(heads | paired.document(made.paired) | {"notes": notes} if as_json else text)


def head(run: Run) -> dict[str, Any]:
    """A run without its figures, as plain values."""
    from ragfilter.evaluate.stored import untitled

    plan = run.plan
    return {
        "run": run.id,
        "at": run.at.isoformat(timespec="seconds"),
        "who": run.who,
        "collection": plan.collection,
        "collection_version": plan.collection_version,
        "labels_version": plan.labels_version,
        "model": plan.model,
        "space": plan.space,
        "query_set": plan.query_set,
        "with_llm": untitled(plan.query_set)[2],
        "profile": plan.profile,
        "settings": dict(plan.changes),
        "queries": plan.queries,
        "done": run.done,
    }


def rows_document(rows: Sequence[Row], prices: Prices | None) -> list[dict[str, Any]]:
    """The table as plain values: a mean and its 95% interval for every measure, null if it was not
    measured. `cost` is that of the prompts of 1,000 questions, null without prices."""
    return [
        {"name": row.name, "group": row.group, "about": row.about}
        | {measure: _interval(row.means.get(measure)) for measure in MEASURES}
        | {"cost": _interval(cost(row, prices) if prices else None)}
        for row in rows
    ]


def queries_document(records: Sequence[QueryRecord]) -> list[dict[str, Any]]:
    """The figures of each query with the run's own settings, as plain values."""
    figures, plain = figures_of(records, IN_FORCE), figures_of(records, UNFILTERED)
    gains = figures["f1"] - plain["f1"]
    return [
        {"id": each.id, "query": each.query, "relevant": each.relevant, "lost": each.lost,
         "gain": float(gains[place])}
        | {measure: float(figures[measure][place]) for measure in MEASURES}
        for place, each in enumerate(records)
    ]  # fmt: skip


def _queries_text(rows: Sequence[QuestionRow], kind: Kind) -> str:
    if not rows:
        return f"No query is among the {kind}.\n"
    heads = (
        "query",
        "lost",
        "F1",
        "against unfiltered",
        "P",
        "R",
        "kept",
        "relevant",
        "unlabelled",
    )
    return columns(heads, [
        (_name(row), str(row.lost), f"{row.f1:.3f}",
         signed(row.gain), f"{row.precision:.3f}", f"{row.recall:.3f}", str(row.kept),
         str(row.relevant), str(row.unlabelled)) for row in rows])  # fmt: skip


def _shown(run: Run, bench: Workbench, *, intervals: bool = False) -> tuple[dict[str, Any], str]:
    from ragfilter.evaluate.runs import changed_since, records_of, settings_of, variants_of

    records, named = records_of(run, bench.runs), variants_of(run)
    rows, gains = table(records, named), layer_gains(records, named)
    profiles = told.profiles_since(run.plan)
    notes = [profiles] if profiles else []
    notes += changed_since(run.plan, bench.collection, bench.labels)
    notes += told.about_records(records, named)
    plan = run.plan
    learned = told.in_sample(settings_of(run), plan.labels_version, plan.collection)
    gain = None if learned or len(records) < 2 else over_fixed_k(records)
    prices = bench.prices
    document = head(run) | {
        "gain_over_fixed_k": gain and {"f1": gain.mean, "ci": gain.ends},
        "rows": rows_document(rows, prices),
        "layers": [
            {"layer": gain.layer, "group": gain.group}
            | {name: _interval(getattr(gain, name)) for name in ("f1", "recall", "tokens")}
            for gain in gains
        ],
        "per_query": queries_document(records),
        "notes": [learned, *notes] if learned else notes,
    }
    text = (
        f"run {run.id}: {run.plan.collection}, {run.plan.query_set}, {_settings(run)}, "
        f"{run.done} of {counted(run.plan.queries, 'query')}\n"
    )
    said = [told.over_fixed_k(records, learned), *notes]
    text += "".join(f"{each}\n" for each in said if each) + "\n"
    if rows:
        heads = ("", *SHOWN, "chunks", "tokens", *(("cost of 1,000",) if prices else ()), "ms")
        text += columns(heads, [_line(row, prices) for row in rows])
        text += "".join(f"{row.name}: {row.about}\n" for row in rows if row.about)
        text += f"{unmeasured([row.name for row in rows])}\n"
        measures = FORMS if intervals else {"f1": FORMS["f1"]}
        text += "\n95% intervals, and F1 if all unlabelled chunks were relevant\n"
        text += columns(("", *measures, "F1 upper bound"), [
            (row.name, *(_ends(row.means.get(name), form) for name, form in measures.items()),
             f"{row.means['f1_most'].mean:.3f}") for row in rows])  # fmt: skip
        text += "\nWhat each layer contributes, with the 95% interval\n"
        text += columns(("layer", "", "F1", "recall", "tokens"), [
            (g.layer, g.group, told.gain_short(g.f1), told.gain_short(g.recall),
             told.gain_short(g.tokens, 0)) for g in gains])  # fmt: skip
        text += f"{ABOUT_LAYERS}\n"
    lost = sorted((each for each in records if each.lost), key=lambda each: -each.lost)
    if lost:
        text += "\nQueries that lose most relevant chunks of those found\n"
        text += columns(("", "lost", "relevant"), [
            (_name(each), str(each.lost), str(each.relevant)) for each in lost[:LOST]])  # fmt: skip
    return document, text


def _name(query: QueryRecord | QuestionRow) -> str:
    return query_name(query.id, query.query, QUERY_WIDTH)


def _interval(found: Interval | None) -> dict[str, Any] | None:
    return None if found is None else {"mean": found.mean, "ci": found.ends}


def _line(row: Row, prices: Prices | None) -> tuple[str, ...]:
    means = row.means
    tokens = means["tokens"].mean
    price = (money(prices.of_thousand(tokens), prices.currency),) if prices else ()
    return (
        row.name,
        *(f"{means[name].mean:.3f}" for name in SHOWN),
        f"{means['chunks'].mean:.1f}",
        f"{tokens:,.0f}",
        *price,
        f"{means['ms'].mean:.1f}" if "ms" in means else "–",
    )


def _ends(found: Interval | None, form: str) -> str:
    return told.between_ends(found, f"{{:{form}}}".format, " – ") if found else "–"


def _settings(run: Run) -> str:
    changed = len(run.plan.changes)
    return run.plan.profile + (f" with {counted(changed, 'change')}" if changed else "")
