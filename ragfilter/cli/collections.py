"""`ragfilter collections`: the collections of the workspace."""

from __future__ import annotations

import typer

from ragfilter.cli import parts, remedies
from ragfilter.cli.app import command
from ragfilter.cli.options import DataDir, Json
from ragfilter.cli.table import table


@command()
def collections(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the collections of the workspace."""
    with parts.open_for(data_dir, "collections") as bench:
        infos = bench.collections()
    if as_json:
        names = ("name", "count", "space", "embedder", "complete", "incomplete")
        parts.emit(parts.dumps([{name: getattr(info, name) for name in names} for info in infos]))
    elif infos:
        body = [(i.name, i.count, i.space, i.embedder or "unknown", parts.state(i)) for i in infos]
        parts.emit(table(("collection", "chunks", "space", "embedder", "state"), body))
    else:
        typer.echo(f"No collection yet. {remedies.COMMANDS['index']}", err=True)
