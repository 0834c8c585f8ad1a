"""`ragfilter collections` and `workspace copy`: list and manage the content of a workspace, and copy it."""

from __future__ import annotations

from typing import Annotated

import typer

from ragfilter.cli import options, output
from ragfilter.cli.options import DataDir, File, Json, Verbose, Viewing, columns_of, text_argument
from ragfilter.cli.program import LOOK, app, command, make_group
from ragfilter.errors import InputError
from ragfilter.settings.deployment import read_deployment
from ragfilter.stores import manage
from ragfilter.stores.base import Opening
from ragfilter.text.numbers import chunk_count, counted
from ragfilter.workbench import Facts, open_files_and_store, overview

group = typer.Typer(invoke_without_command=True, **LOOK)
app.add_typer(group, name="collections")
workspace = make_group("workspace")
Name = Annotated[str, text_argument(help="Name of the collection.")]


@group.callback()
def collections(context: typer.Context, data_dir: DataDir = None, as_json: Json = False, verbose: Verbose = 0) -> None:
    """List, export and delete the collections of the workspace."""
    if context.invoked_subcommand is not None:
        return
    output.start_logging(verbose)
    output.as_json = as_json
    with options.open_for(data_dir, "collections") as bench:
        facts = overview(bench)
        copies = ", ".join(bench.workspace.copied())
    names = ("name", "count", "space", "embedder", "complete", "incomplete")
    document = [{name: getattr(each.info, name) for name in names} for each in facts]
    if facts or as_json:
        heads = ("collection", "chunks", "space", "embedder", "rules", "labels", "changed", "state")
        output.show(document, output.table(heads, map(_row, facts)))
    elif copies:
        rebuild = output.COMMANDS["rebuild"]
        output.tell(f"No collection is left, but copies of {copies}. {rebuild}")
    else:
        output.tell(f"No collection yet. {output.COMMANDS['index']}")


def _row(each: Facts) -> tuple[object, ...]:
    info = each.info
    return (
        info.name,
        info.count,
        info.space,
        each.model or "unknown",
        "?" if each.rules is None else each.rules,
        "?" if each.labels is None else each.labels,
        "?" if each.changed is None else f"{each.changed:%Y-%m-%d %H:%M}",
        (info.incomplete or "complete") if info.ours else "not indexed by ragfilter",
    )


@command(group)
def export(
    name: Name,
    viewing: Viewing,
    out: Annotated[File, "Output file. Default: standard output."] = None,
    data_dir: DataDir = None,
) -> None:
    """Write a collection as JSONL that can be re-indexed, including rule edits.

    Writes only chunks that the user can see. Without a user, the settings decide."""
    user = viewing.viewer
    with options.open_for(data_dir, "collections") as bench:
        records = list(manage.export(bench.workspace, bench.collection(name), user))
    output.write("".join(records), out, f"{name}: {chunk_count(len(records))} written to ")


@command(group, name="open")
def open_(
    name: Name,
    folder: Annotated[
        str,
        "Chroma folder, URL of a Chroma server, or address of a PostgreSQL database, where NAME is "
        "a table. Default: the workspace's own store.",
    ] = "",
    model: Annotated[str, "Embedding model that made the vectors, unless the collection names it."] = "",
    writable: Annotated[bool, "Allow changes to the collection's rules."] = False,
    column: Annotated[
        list[str] | None,
        "Column of a table for id, text, embedding, metadata (JSON) or any field, such as "
        "text=body. Repeatable. Default: by names and types.",
    ] = None,
    metric: Annotated[str, "Distance of a table: l2, cosine or ip. Default: its index's, or cosine."] = "",
    data_dir: DataDir = None,
) -> None:
    """Open an existing Chroma collection or pgvector table as it is, and show what works with it.

    It is read-only unless you allow changes. Its folder must not be open in another program."""
    with options.open_for(data_dir, "collections") as bench:
        opening = Opening(folder, model, writable, columns_of(column or ()), metric)
        checks = bench.stores.open(name, opening, bench.load_embedder)
        model = bench.recorded_embedder(name).name
    lines = [f"{'works' if each.good else 'needs more'}: {each.words}" for each in checks]
    output.emit(output.text_of(f"{name} is open, queried with {model}", *lines))


@command(group)
def close(name: Name, data_dir: DataDir = None) -> None:
    """Close a collection that ragfilter did not make. The collection itself is not changed."""
    with options.open_for(data_dir, "collections") as bench:
        bench.stores.forget(name)
    output.emit(f"{name} is closed\n")


@command(group)
def delete(
    name: Name, yes: Annotated[str, "Repeat the collection name to confirm."] = "", data_dir: DataDir = None
) -> None:
    """Delete a collection, with its rule edits and labels. It cannot be undone."""
    if yes != name:
        raise InputError(
            "A deleted collection cannot be brought back.",
            remedy=f"Add --yes {name} to delete it. First save its chunks and labels, if you want, "
            "with `ragfilter collections export` and `ragfilter labels export`.",
        )
    with options.open_for(data_dir, "collections") as bench:
        manage.delete(bench.workspace, name)
    output.emit(f"{name} is deleted\n")


@command(workspace, json=True)
def copy(
    source: Annotated[str, "The workspace to copy: a folder, or postgresql://…"],
    target: Annotated[str, "The new workspace: an empty or missing folder, or an empty database."],
) -> None:
    """Copy a whole workspace, such as a folder into PostgreSQL. If interrupted, run it again to
    continue. At the end, counts and checksums of both are compared.

    Prompts, templates and other programs' Chroma collections are not copied."""
    with (
        open_files_and_store(read_deployment(data_dir=source), "copy") as here,
        open_files_and_store(read_deployment(data_dir=target), "copy") as there,
    ):
        done = manage.copy_workspace(here, there, output.progress)
    lines = (
        f"{each.name}: {counted(each.count, 'row')}, {each.new:,} copied now (sha256 {each.checksum[:12]})"
        for each in done
        if each.count
    )
    output.show(done, *lines, "The two workspaces are the same.")
