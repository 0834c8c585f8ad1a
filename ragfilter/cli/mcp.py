"""`ragfilter mcp`: the agent's tools over stdio. Source: docs/design.md#cli."""

from __future__ import annotations

from threading import TIMEOUT_MAX

from ragfilter.cli import parts
from ragfilter.cli.commands import app
from ragfilter.cli.options import (
    CollectionName,
    ConfigFile,
    DataDir,
    Departments,
    Level,
    ProfileName,
    SetValues,
    Verbose,
)
from ragfilter.deadline import within


@app.command(name="mcp")
def serve(
    collection: CollectionName = "demo",
    profile: ProfileName = None,
    config: ConfigFile = None,
    values: SetValues = None,
    level: Level = None,
    department: Departments = None,
    data_dir: DataDir = None,
    verbose: Verbose = 0,
) -> None:
    """Serve the tools search_chunks and get_chunks to an agent over stdio (MCP).

    The agent searches as the user of --level and --department, for as long as the server runs:
    clearance is on in every profile. The server holds the workspace until its input ends.
    """
    parts.start_logging(verbose)
    loaded = parts.load_config(profile, config, values, {})
    user = parts.user_of(level, department, values)
    from ragfilter.integrations.mcp import make_server
    from ragfilter.integrations.tools import ChunkTools

    with parts.open_for(data_dir, "mcp") as bench:
        parts.backends(bench, collection)
        server = make_server(ChunkTools(bench, collection, loaded.settings, user))
        # In a thread that Ctrl+C and SIGTERM give up: nothing ends its read of standard input.
        within(TIMEOUT_MAX, server.run)
