"""`ragfilter index`: index records into a collection, or rebuild a collection from its copy."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Self

import typer

from ragfilter.cli import options, output
from ragfilter.cli.options import DataDir, Texts, columns_of, mended, refuse
from ragfilter.cli.program import command
from ragfilter.errors import InputError, StoreError, WorkspaceLocked
from ragfilter.indexing.embed_ahead import prepare
from ragfilter.indexing.order import Done, Order, carry_out
from ragfilter.indexing.queue import Queue
from ragfilter.ingest.bundled import DEMOS
from ragfilter.ingest.records import PLAIN, ReadOptions
from ragfilter.settings.deployment import read_deployment
from ragfilter.stores.workspace_files import database_of
from ragfilter.text.numbers import chunk_count, counted
from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

SOURCES = "demo, adsapi, or a file, folder or zip of .jsonl .csv .md .txt .pdf or OpenAPI (.json .yaml)"
LOOK_S = 0.2
"""Seconds between checks of a queued job."""


@command(json=True)
def index(
    source: Annotated[str, typer.Argument(help=f"{SOURCES}.", callback=mended)] = "",
    collection: Annotated[str, "--collection", "-c", "Its name. Default: demo or adsapi."] = "",
    reset: Annotated[bool, "Empty the collection first. Labels and edited rules stay."] = False,
    rebuild: Annotated[bool, "Rebuild the collection from ragfilter's own copy, without SOURCE."] = False,
    size: Annotated[int | None, "Maximum characters of a chunk. The bundled model reads 1,000."] = None,
    overlap: Annotated[int, "Characters that a chunk repeats from the end of the previous one."] = 0,
    headings: Annotated[bool, "Split Markdown at its headings."] = True,
    column: Annotated[Texts, "CSV column for a field, such as text=Body. Repeatable."] = None,
    ray: Annotated[str, "Embed on the Ray cluster at this address; local starts one."] = "",
    skip_bad: Annotated[bool, "Leave out unusable records, and list them."] = False,
    data_dir: DataDir = None,
) -> None:
    """Index chunks into a collection. Unchanged chunks are not embedded again.

    If the app has the workspace's folder open, it does the indexing."""
    name = collection or (source if source in DEMOS else "")
    if not name:
        raise InputError("--collection is missing.", remedy="Name the collection to index into.")
    if rebuild:
        refuse(
            "beside --rebuild",
            SOURCE=source,
            reset=reset,
            size=size,
            overlap=overlap,
            no_headings=not headings,
            column=column,
            skip_bad=skip_bad,
            ray=ray,
        )
    elif not source:
        raise InputError("SOURCE is missing.", remedy=f"Give {SOURCES}.")
    reading = ReadOptions(size or PLAIN.size, overlap, headings, columns_of(column or ()))
    order = Order(name, source, reset, skip_bad, reading=reading, ray=ray)
    if size and Path(source).suffix.lower() in (".jsonl", ".ndjson", ".csv"):
        log.warning("--size has no effect: every record of %s is one chunk.", source)
    with _Progress() as progress:
        done = _carry_out(order, data_dir, progress)
    _show(done)


def index_demo(bench: Workbench) -> None:
    """Index the demo collection, except for its sentences, which the app embeds in the background."""
    with _Progress() as progress:
        done = carry_out(Order("demo", "demo"), bench, progress.show)
    _show(done)


def _show(done: Done) -> None:
    for warning in done.report.warnings:
        log.warning(warning)
    for refusal in done.refused:
        log.warning("left out: %s", refusal.message)
    report = done.report
    counts = {
        "added": report.added,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "no longer in the source, which --reset removes": report.not_in_source,
        # If the collection was incomplete or damaged, everything is written again.
        "restored from the copy": report.written - report.added - report.changed,
    }
    listed = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    left_out = f", {counted(done.left_out, 'record')} left out" if done.left_out else ""
    document = asdict(report) | {"left_out": done.left_out, "refused": done.refused, "labels": done.labels}
    output.show(
        document | {"seconds": round(report.seconds, 3)},
        f"{report.collection}: {chunk_count(report.total)}{listed and f' ({listed})'}{left_out}, "
        f"{report.seconds:.1f} s",
        done.labels and f"{report.collection}: {done.labels}",
    )


def _carry_out(order: Order, data_dir: str | None, progress: _Progress) -> Done:
    try:
        with options.open_for(data_dir, "index") as bench:
            done = carry_out(order, bench, progress.show)
            for embedded in prepare(bench, bench.workspace.vectors):
                progress.show("sentences embedded", *embedded)
            return done
    except WorkspaceLocked:
        if by_app := _by_the_app(order, data_dir, progress):
            return by_app
        raise


class _Progress:
    """The progress bars of an indexing job. A user who ends it is told how far the last one has come."""

    def __init__(self) -> None:
        self._reached = ""
        self._bar = cache(output.progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, raised: type[BaseException] | None, *_: object) -> None:
        if raised is KeyboardInterrupt:
            output.tell(self._reached)

    def show(self, what: str, done: int, total: int) -> None:
        of = f" of {total:,}" if total else ""
        self._reached = f"{done:,}{of} {what}. Run the same command again to continue."
        self._bar(what)(done, total)


def _by_the_app(order: Order, data_dir: str | None, progress: _Progress) -> Done | None:
    """Hand the job to the process that has the workspace open, and wait for it. Returns None if that accepts no jobs,
    or if the workspace is at an address: the app may be on another machine, without the source."""
    deployment = read_deployment(data_dir=data_dir)
    if deployment.address:
        return None
    folder, source = Path(deployment.data_dir).expanduser().resolve(), order.source
    if source and source not in DEMOS:
        # The app may have another working directory.
        source = str(Path(source).expanduser().resolve())
    with closing(Queue(database_of(folder, deployment.database_url, ""), folder)) as queue:
        if not queue.attended:
            return None
        job = queue.put(replace(order, source=source, embedder=deployment.embedding_model))
        output.tell("The app has the workspace open. It indexes for this command.")
        try:
            while job.status.open and queue.attended:
                time.sleep(LOOK_S)
                job = queue.job(job.id) or job
                at = job.status
                if at.phase:
                    progress.show(at.phase, at.done, at.total)
            if job.status.open or job.status.state == "stopped":
                remedy = "Run the same command again to continue from there."
                raise StoreError("The app has stopped indexing.", remedy=remedy)
            return job.status.result()
        finally:
            queue.remove(job.id)
