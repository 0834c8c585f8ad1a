"""`ragfilter index`: records into a collection, or a collection from its own copy."""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import DataDir, Json, in_words
from ragfilter.errors import InputError

if TYPE_CHECKING:
    from ragfilter.stores.index import IndexReport
    from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

SOURCES = "demo, adsapi, or a file or folder of .jsonl .csv .md .txt or OpenAPI (.json .yaml)"


@command()
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
) -> None:
    """Index chunks into a collection. Unchanged chunks are not embedded again."""
    from ragfilter.ingest.load import DEMOS

    name = collection or (source if source in DEMOS else "")
    if not name:
        raise InputError("--collection is missing.", remedy="Name the collection to index into.")
    if not source and not rebuild:
        raise InputError("SOURCE is missing.", remedy=f"Give {SOURCES}.")
    with parts.open_for(data_dir, "index") as bench:
        report = run(bench, source, name, reset=reset, from_copy=rebuild)
    parts.emit(parts.dumps(document(report)) if as_json else text(report))


def run(
    bench: Workbench, source: str, name: str, *, reset: bool = False, from_copy: bool = False
) -> IndexReport:
    """Index `source` (or, `from_copy`, the collection's own copy) as the collection `name`.

    Rules that were edited stay as edited, also with `reset`. Raises InputError, StoreError,
    ModelError.
    """
    from ragfilter.ingest.load import load
    from ragfilter.rules.edits import edited_rules
    from ragfilter.stores import index as indexing

    rules = edited_rules(bench.journal, name)
    if from_copy:
        report = indexing.rebuild(
            name,
            workspace=bench.workspace,
            rules=rules,
            progress=parts.progress("chunks restored"),
        )
    else:
        report = indexing.index(
            load(source, progress=parts.progress("characters read")),
            name=name,
            workspace=bench.workspace,
            embedder=bench.embedder,
            reset=reset,
            rules=rules,
            progress=parts.progress("texts embedded, chunks written"),
        )
    for warning in report.warnings:
        log.warning(warning)
    return report


def document(report: IndexReport) -> dict[str, Any]:
    """What `index --json` prints."""
    return asdict(report) | {"seconds": round(report.seconds, 3)}


def text(report: IndexReport) -> str:
    """The same in words."""
    counts = [
        f"{number} {word}"
        for number, word in (
            (report.added, "added"),
            (report.changed, "changed"),
            (report.unchanged, "unchanged"),
            (report.not_in_source, "no longer in the source"),
        )
        if number
    ]
    done = f" ({', '.join(counts)})" if counts else ""
    return f"{report.collection}: {report.total} chunks{done}, {report.seconds:.1f} s\n"
