"""`ragfilter app` and `ragfilter mcp`: serve the page to people and the tools to agents."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from importlib import import_module
from importlib.resources import files
from threading import TIMEOUT_MAX
from typing import Annotated

import typer

from ragfilter.basics.deadline import within
from ragfilter.cli import access, output
from ragfilter.cli.app import command
from ragfilter.cli.index import index
from ragfilter.cli.options import DataDir, Filtering, Place
from ragfilter.errors import InputError
from ragfilter.model import PUBLIC
from ragfilter.text.urls import shown


@command(name="app")
def serve_app(
    port: Annotated[
        int, typer.Option(min=1, max=65535, envvar="STREAMLIT_SERVER_PORT", help="Port of the app.")
    ] = 8501,
    demo: Annotated[bool, "Index the demo even if there are other collections."] = False,
    data_dir: DataDir = None,
) -> None:
    """Start the app and print its address. The demo is indexed first if there is no collection."""
    import click

    # Checked before anything is indexed, which takes a minute.
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        raise InputError(
            f"Port {port} is in use or not allowed.", remedy="Choose another with --port NUMBER."
        ) from None
    with access.open_for(data_dir, "app") as bench:
        place = bench.deployment.address or str(bench.workspace.path)
        wanted = demo or not bench.collections()
    if wanted:
        output.tell("the demo collection is indexed first, which takes a minute")
        index("demo", data_dir=data_dir)
    os.environ["RAGFILTER_WORKSPACE"] = place
    # Imported by name, because the command line must not depend on Streamlit. Opened now and not at
    # the first visit, so that a second process is refused from the start.
    resources = import_module("ragfilter.ui.session.resources").open_resources()
    # Streamlit prints the address once it is served there.
    named = shown(place) if bench.deployment.address else place
    output.emit(f"workspace: {named}  (Ctrl+C stops the app)\n")
    script = files("ragfilter") / "served" / "app.py"
    try:
        with suppress(click.Abort):
            import_module("streamlit.web.cli").main(
                ["run", str(script), "--server.port", str(port)],
                prog_name="streamlit",
                standalone_mode=False,
            )
    except OSError as error:
        raise InputError(
            f"The app cannot be served: {error.strerror}.",
            remedy="Check --port and STREAMLIT_SERVER_ADDRESS.",
        ) from None
    finally:
        # The indexing queue must not be amid something when Python ends.
        resources.bench.close()
    # Only a signal ends the server, even if it ends without a word.
    raise KeyboardInterrupt


@command(name="mcp")
def serve_tools(place: Place, filtering: Filtering) -> None:
    """Serve the tools search_chunks and get_chunks to an agent over stdio (MCP).

    The agent searches as the user of --level and --department, by default the public, whatever
    profile it chooses. The server holds the workspace until its input ends.
    """
    loaded, _ = filtering.load()
    user = filtering.user or PUBLIC
    from ragfilter.library.tools import ChunkTools, make_server
    from ragfilter.library.workspace import OpenWorkspace
    from ragfilter.workbench import read_deployment

    with OpenWorkspace.open(read_deployment(data_dir=place.data_dir), kind="mcp") as bench:
        access.backends(bench, place.collection)
        server = make_server(ChunkTools(bench, place.collection, loaded.settings, user))
        # In a thread that is abandoned on Ctrl+C and SIGTERM, since nothing else ends its read of
        # standard input.
        within(TIMEOUT_MAX, server.run)
