"""The command line: `index`, `query`, `cut` and `eval`. Source: docs/design.md#cli.

Standard output carries the result alone; with `--json` one JSON document. Progress and logs go to
standard error. Exit codes are in `ragfilter.cli.running`.

What takes long to import (torch, chromadb) is imported inside the commands, so that `--help` and
`cut` answer at once.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from typing import Annotated

import typer

from ragfilter import __version__
from ragfilter.cli import parts
from ragfilter.cli.options import (
    CollectionName,
    ConfigFile,
    DataDir,
    Departments,
    Except,
    GapThreshold,
    Json,
    Level,
    Only,
    ProfileName,
    QrelsFile,
    QueriesFile,
    SetValues,
    Verbose,
    help_of,
    in_words,
)
from ragfilter.errors import InputError

SOURCES = "demo, adsapi, or a file or folder of .jsonl .csv .md .txt or OpenAPI (.json .yaml)"

app = typer.Typer(
    help="See, tune and explain what is filtered out between a vector search and a prompt.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def index(
    source: Annotated[str, typer.Argument(help=f"{SOURCES}.")] = "",
    collection: Annotated[
        str,
        typer.Option(
            "--collection",
            "-c",
            help="Name of the collection. Defaults to the source for demo and adsapi.",
            callback=in_words,
        ),
    ] = "",
    reset: Annotated[bool, typer.Option(help="Empty the collection first.")] = False,
    rebuild: Annotated[
        bool, typer.Option(help="Restore the collection from its own copy, without SOURCE.")
    ] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Index chunks into a collection. Unchanged chunks are not embedded again."""
    parts.start_logging(verbose)
    from ragfilter.cli import indexing

    name = collection or (source if source in indexing.DEMOS else "")
    if not name:
        raise InputError("--collection is missing.", remedy="Name the collection to index into.")
    if not source and not rebuild:
        raise InputError("SOURCE is missing.", remedy=f"Give {SOURCES}.")
    report = indexing.run(
        source, name, reset=reset, from_copy=rebuild, data_dir=data_dir, progress=parts.progress
    )
    parts.emit(parts.dumps(indexing.document(report)) if as_json else indexing.text(report))


@app.command()
def query(
    text: Annotated[str, typer.Argument(help="The question.")],
    collection: CollectionName = "demo",
    profile: ProfileName = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    k: Annotated[
        str | None,
        typer.Option(
            "-k",
            metavar="N",
            help="Maximum number of results. Sets retrieval.k, cutoff.max_results, "
            "judge.max_chunks and quality.min_top_k (and quality.max_top_k if it is smaller).",
        ),
    ] = None,
    gap_threshold: GapThreshold = None,
    distance_threshold: Annotated[
        str | None,
        typer.Option(
            "--distance-threshold", metavar="NUMBER", help=help_of("cutoff.distance_offset")
        ),
    ] = None,
    files: Annotated[
        str | None, typer.Option("--files", help=help_of("retrieval.source_pattern"))
    ] = None,
    rerank: Annotated[
        bool | None,
        typer.Option(
            "--rerank/--no-rerank",
            help="Whether the LLM judges the chunks of this query. If not, the first "
            "judge.max_chunks are kept, unless the cutoff is on.",
            show_default=False,
        ),
    ] = None,
    references: Annotated[
        bool,
        typer.Option(
            "--references/--no-references",
            help="With --json: add the references of each hit, as refs.",
        ),
    ] = False,
    answer: Annotated[bool, typer.Option("--answer", help="Answer from the kept chunks.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print the trace (with --json: on standard error).")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="List every dropped chunk.")] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> int:
    """Query a collection and see what is kept, what is dropped, and why."""
    parts.start_logging(verbose)
    flags: dict[str, dict[str, object]] = {
        "-k": {"retrieval.k": k, "cutoff.max_results": k, "judge.max_chunks": k},
        "--gap-threshold": {"cutoff.gap_threshold": gap_threshold},
        "--distance-threshold": {"cutoff.distance_offset": distance_threshold},
        "--files": {"retrieval.source_pattern": files},
        "--rerank": {"judge.enabled": rerank or None},
    }
    loaded = parts.load_config(profile, config, values, flags)
    user = parts.user_of(level, department, values)
    from ragfilter import report
    from ragfilter.cli import text as words
    from ragfilter.judge import call

    if k is not None:
        loaded = replace(loaded, settings=parts.looking_first_at_k(loaded.settings))
    if rerank is False:
        loaded = replace(loaded, settings=call.without(loaded.settings))

    with parts.open_for(data_dir, "query") as bench:
        result = parts.ask(text, loaded, parts.backends(bench, collection), user)
        answered = parts.answer_of(result, bench) if answer else None
    if as_json:
        document = report.document(result, references=references) | {
            "profile": loaded.profile,
            "settings": result.settings.model_dump(),
        }
        if answered is not None:
            document["answer"] = words.answer_document(*answered)
        if debug:
            typer.echo(report.trace_text(result), err=True, nl=False)
        parts.emit(parts.dumps(document))
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        body = (
            report.trace_text(result)
            if debug
            else words.query_text(result, profile=loaded.profile, width=width, every=every)
        )
        parts.emit(body + ("\n" + words.answer_text(*answered) if answered else ""))
    if answered is not None and answered[0].error:
        return parts.fail(f"The answer failed: {answered[0].error}")
    return 0


@app.command(context_settings={"ignore_unknown_options": True})
def cut(
    distances: Annotated[list[str], typer.Argument(help="Distances, best first.")],
    strategy: Annotated[
        str | None, typer.Option("--strategy", "-s", help=help_of("cutoff.strategy"))
    ] = None,
    k: Annotated[
        str | None, typer.Option("--k", "-k", metavar="N", help=help_of("cutoff.max_results"))
    ] = None,
    min_results: Annotated[
        str | None,
        typer.Option("--min-results", metavar="N", help=help_of("cutoff.min_results")),
    ] = None,
    gap_threshold: GapThreshold = None,
    distance_offset: Annotated[
        str | None,
        typer.Option(
            "--distance-offset",
            "--distance-threshold",
            metavar="NUMBER",
            help=help_of("cutoff.distance_offset"),
        ),
    ] = None,
    jumps: Annotated[
        str | None, typer.Option("--jumps", metavar="N", help=help_of("cutoff.jumps"))
    ] = None,
    b_extra: Annotated[
        str | None, typer.Option("--b-extra", metavar="N", help=help_of("cutoff.b_extra"))
    ] = None,
    relative_offset: Annotated[
        str | None,
        typer.Option("--relative-offset", metavar="SHARE", help=help_of("cutoff.relative_offset")),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Apply the cutoff to a list of distances. Needs no collection."""
    parts.start_logging(verbose)
    from ragfilter.cli import cutting
    from ragfilter.layers.cutoff import cut as cut_values

    flags = {
        "--strategy": {"cutoff.strategy": strategy},
        "--k": {"cutoff.max_results": k},
        "--min-results": {"cutoff.min_results": min_results},
        "--gap-threshold": {"cutoff.gap_threshold": gap_threshold},
        "--distance-offset": {"cutoff.distance_offset": distance_offset},
        "--jumps": {"cutoff.jumps": jumps},
        "--b-extra": {"cutoff.b_extra": b_extra},
        "--relative-offset": {"cutoff.relative_offset": relative_offset},
    }
    values = [cutting.distance(text) for text in distances]
    settings = parts.load_config("adaptive-gap", None, None, flags).settings
    made = cut_values(values, settings.cutoff)
    parts.emit(parts.dumps(cutting.document(made)) if as_json else cutting.text(made, values))


@app.command(name="eval")
def evaluate(
    queries: QueriesFile,
    qrels: QrelsFile = None,
    collection: CollectionName = "demo",
    profile: ProfileName = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    only: Only = None,
    leave_out: Except = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    """Compare the filtered with the unfiltered result over labelled queries."""
    parts.start_logging(verbose)
    loaded = parts.load_config(profile, config, values, {})
    user = parts.user_of(level, department, values)
    from ragfilter.cli import text as words
    from ragfilter.evaluate import labels, run

    labelled = labels.choose(
        labels.load(queries, qrels), only=only or (), leave_out=leave_out or ()
    )
    with parts.open_for(data_dir, "eval") as bench:
        backends = parts.backends(bench, collection)
        incomplete = backends.incomplete
        unknown = parts.unknown_labels(labelled, backends)
        made = run.evaluate(
            labelled.queries,
            labelled.qrels,
            loaded.settings,
            backends,
            user,
            progress=parts.progress("queries"),
        )
    if as_json:
        head = {
            "collection": collection,
            "profile": loaded.profile,
            "incomplete": incomplete,
        }
        parts.emit(parts.dumps(head | run.document(made) | {"unknown_labels": unknown}))
    else:
        parts.emit(f"{collection}, profile {loaded.profile}: {words.evaluation_text(made)}")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        parts.emit(f"ragfilter {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        parts.emit(f"{context.get_help()}\n")
