"""`ragfilter collections`, `profiles` and `settings`: what there is. Source: docs/design.md#cli."""

from __future__ import annotations

import typer

from ragfilter.cli import parts, remedies
from ragfilter.cli.commands import app
from ragfilter.cli.options import DataDir, Json, Verbose
from ragfilter.settings.profiles import PROFILES


@app.command()
def collections(data_dir: DataDir = None, as_json: Json = False, verbose: Verbose = 0) -> None:
    """List the collections of the workspace."""
    parts.start_logging(verbose)
    from ragfilter.cli import text as words

    with parts.open_for(data_dir, "collections") as bench:
        infos = bench.collections()
    if as_json:
        names = ("name", "count", "space", "embedder", "complete", "incomplete")
        parts.emit(parts.dumps([{name: getattr(info, name) for name in names} for info in infos]))
    elif infos:
        body = [(i.name, i.count, i.space, i.embedder or "unknown", parts.state(i)) for i in infos]
        parts.emit(words.table(("collection", "chunks", "space", "embedder", "state"), body))
    else:
        typer.echo(f"No collection yet. {remedies.COMMANDS['index']}", err=True)


@app.command()
def profiles(as_json: Json = False) -> None:
    """List the profiles and what each sets."""
    from ragfilter.cli import text as words

    if as_json:
        made = [{"name": p.name, "help": p.help, "values": {**p.values}} for p in PROFILES.values()]
        parts.emit(parts.dumps(made))
    else:
        parts.emit(words.table(("profile", ""), [(p.name, p.help) for p in PROFILES.values()]))


@app.command()
def settings() -> None:
    """Print the settings reference (Markdown)."""
    from ragfilter.cli.settings_doc import markdown

    parts.emit(markdown())
