"""`ragfilter mcp`: the agent's tools over stdio. Source: docs/design.md#cli."""

from __future__ import annotations

from threading import TIMEOUT_MAX

from ragfilter.basics.deadline import within
from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Filtering, Place
from ragfilter.model import PUBLIC


@command(name="mcp")
def serve(place: Place, filtering: Filtering) -> None:
    """Serve the tools search_chunks and get_chunks to an agent over stdio (MCP).

    The agent searches as the user of --level and --department, by default the public, whatever
    profile it chooses. The server holds the workspace until its input ends.
    """
    loaded, _ = filtering.load()
    user = filtering.user or PUBLIC
    from ragfilter.library.mcp import make_server
    from ragfilter.library.tools import ChunkTools

    with place.open("mcp") as bench:
        parts.backends(bench, place.collection)
        server = make_server(ChunkTools(bench, place.collection, loaded.settings, user))
        # In a thread that is abandoned on Ctrl+C and SIGTERM, since nothing else ends its read of
        # standard input.
        within(TIMEOUT_MAX, server.run)
