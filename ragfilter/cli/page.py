"""`ragfilter app`: starts the app, with the demo collection if there is no other."""

from __future__ import annotations

import os
import socket
from importlib import import_module
from importlib.resources import files
from typing import Annotated

import click
import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.index import index
from ragfilter.cli.options import DataDir
from ragfilter.errors import InputError


@command(name="app")
def serve(
    port: Annotated[
        int, typer.Option(min=1, max=65535, envvar="STREAMLIT_SERVER_PORT", help="Port of the app.")
    ] = 8501,
    demo: Annotated[
        bool, typer.Option("--demo", help="Index the demo even if there are other collections.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Start the app and print its address. The demo is indexed first if there is no collection."""
    # Asked before anything is indexed, which takes a minute.
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        raise InputError(
            f"Port {port} is in use or not allowed.", remedy="Choose another with --port NUMBER."
        ) from None
    with parts.open_for(data_dir, "app") as bench:
        workspace = bench.workspace.path
        wanted = demo or not bench.collections()
    if wanted:
        parts.tell("the demo collection is indexed first, which takes a minute")
        index("demo", data_dir=data_dir)
    os.environ["RAGFILTER_DATA_DIR"] = str(workspace)
    # Imported by name, because the command line must not depend on Streamlit. Opened now and not at
    # the first visit, so that a second process is refused from the start.
    import_module("ragfilter.ui.session.resources").open_resources()
    # Streamlit prints the address once it is served there.
    parts.emit(f"workspace: {workspace}  (Ctrl+C stops the app)\n")
    script = files("ragfilter") / "served" / "app.py"
    try:
        import_module("streamlit.web.cli").main(
            ["run", str(script), "--server.port", str(port)],
            prog_name="streamlit",
            standalone_mode=False,
        )
    except click.Abort:
        raise KeyboardInterrupt from None
    except OSError as error:
        raise InputError(
            f"The app cannot be served: {error.strerror}.",
            remedy="Check --port and STREAMLIT_SERVER_ADDRESS.",
        ) from None
