"""`ragfilter query`: what is kept for a question, what is dropped, and why."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from typing import Annotated

import typer

from ragfilter import report
from ragfilter.cli import parts
from ragfilter.cli import text as words
from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, GapThreshold, Json, Place, setting
from ragfilter.cli.why import why_document, why_text
from ragfilter.judge import call


@command()
def query(
    text: Annotated[str, typer.Argument(help="The question.")],
    place: Place,
    filtering: Filtering,
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
        setting("cutoff.distance_offset", "--distance-threshold", metavar="NUMBER"),
    ] = None,
    files: Annotated[str | None, setting("retrieval.source_pattern", "--files")] = None,
    rerank: Annotated[
        bool | None,
        typer.Option(
            "--rerank/--no-rerank",
            help="Whether the LLM judges the chunks of this query. Without it, the first "
            "judge.max_chunks are kept, unless the cutoff is on.",
            show_default=False,
        ),
    ] = None,
    references: Annotated[
        bool,
        typer.Option(
            "--references/--no-references",
            help="With --json: add each hit's references as refs.",
        ),
    ] = False,
    answer: Annotated[bool, typer.Option("--answer", help="Answer from the kept chunks.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print the trace (with --json: on standard error).")
    ] = False,
    why: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Explain one chunk instead: what each layer decided about it, and the smallest "
            "changes that would bring it back or drop it.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List every dropped chunk.")] = False,
    as_json: Json = False,
) -> int:
    """Query a collection and see what is kept, what is dropped, and why."""
    flags: dict[str, dict[str, object]] = {
        "-k": {"retrieval.k": k, "cutoff.max_results": k, "judge.max_chunks": k},
        "--gap-threshold": {"cutoff.gap_threshold": gap_threshold},
        "--distance-threshold": {"cutoff.distance_offset": distance_threshold},
        "--files": {"retrieval.source_pattern": files},
        "--rerank": {"judge.enabled": rerank or None},
    }
    if why is not None:
        parts.refuse_beside("--why", answer=answer, debug=debug, all=every, references=references)
    elif not as_json:
        parts.refuse_without("--json", references=references)
    loaded, user = filtering.load(flags)
    if k is not None:
        loaded = replace(loaded, settings=parts.looking_first_at_k(loaded.settings))
    if rerank is False:
        loaded = replace(loaded, settings=call.without(loaded.settings))

    with place.open("query") as bench:
        result = parts.ask(text, loaded.settings, parts.backends(bench, place.collection), user)
        answered = parts.answer_of(result, bench) if answer else None
    if why is not None:
        parts.emit(why_document(result, why) if as_json else why_text(result, why))
        return 0
    if as_json:
        document = report.document(result, references=references) | {
            "profile": loaded.profile,
            "settings": result.settings.model_dump(),
            "origins": dict(loaded.origins),
        }
        if answered is not None:
            document["answer"] = words.answer_document(*answered)
        if debug:
            typer.echo(report.trace_text(result), err=True, nl=False)
        parts.emit(document)
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
