"""`ragfilter app`, `mcp`, `serve` and `token`: serve the page, an agent's tools and the HTTP service; make tokens."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import nullcontext, suppress
from importlib import import_module
from importlib.resources import files
from threading import TIMEOUT_MAX
from typing import Annotated, Literal

import tomlkit
import typer

from ragfilter.basics.threads import within
from ragfilter.cli import options, output
from ragfilter.cli.options import DataDir, Departments, File, Filtering, Level, Place, refuse
from ragfilter.cli.program import command
from ragfilter.errors import InputError, WorkspaceLocked
from ragfilter.model import PUBLIC
from ragfilter.settings.deployment import read_deployment
from ragfilter.text.urls import LOOPBACK, shown


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

    # Checked first, since indexing takes half a minute.
    _bind("127.0.0.1", port).close()
    with options.open_for(data_dir, "app") as bench:
        place = bench.deployment.address or str(bench.workspace.path)
        # A demo that is alone and incomplete was interrupted.
        if demo or all(info.name == "demo" and info.incomplete for info in bench.collections()):
            from ragfilter.cli.index import index_demo

            output.tell("the demo collection is indexed first, which takes half a minute")
            # Another app may be indexing it into the same database.
            with suppress(WorkspaceLocked):
                index_demo(bench)
    os.environ["RAGFILTER_WORKSPACE"] = place
    # Imported by name, because the command line must not depend on Streamlit. Opened now, not at
    # the first visit, so that a second process is refused immediately.
    resources = import_module("ragfilter.ui.resources").open_resources()
    # Streamlit prints the address when it is served.
    shown_place = shown(place) if bench.deployment.address else place
    output.emit(f"workspace: {shown_place}  (Ctrl+C stops the app)\n")
    script = files("ragfilter") / "streamlit_app" / "app.py"
    try:
        with suppress(click.Abort):
            import_module("streamlit.web.cli").main(
                ["run", str(script), "--server.port", str(port)], prog_name="streamlit", standalone_mode=False
            )
    except OSError as error:
        remedy = "Check --port and STREAMLIT_SERVER_ADDRESS."
        raise InputError(f"The app cannot be served: {error.strerror}.", remedy=remedy) from None
    finally:
        # The indexing queue must be idle when Python exits.
        resources.bench.close()
    # Only a signal ends the server, even if it raises nothing.
    raise KeyboardInterrupt


@command(name="mcp")
def serve_tools(place: Place, filtering: Filtering) -> None:
    """Serve the tools search_chunks and get_chunks to an agent over stdio (MCP).

    The agent searches as the user of --level and --department, by default the public, whatever profile it chooses. The
    server keeps the workspace until its input ends."""
    loaded, _ = filtering.load()
    user = filtering.user or PUBLIC
    from ragfilter.library.tools import ChunkTools, make_server
    from ragfilter.library.workspace import OpenWorkspace

    with OpenWorkspace.open(read_deployment(data_dir=place.data_dir), kind="mcp") as bench:
        place.backends(bench)
        server = make_server(ChunkTools(bench, place.collection, loaded.settings, user))
        # In a thread that is abandoned on Ctrl+C and SIGTERM, since nothing else can interrupt its
        # read from standard input.
        within(TIMEOUT_MAX, server.run)


@command()
def serve(
    place: Place,
    filtering: Filtering,
    port: Annotated[int, "Port of the service.", {"min": 1, "max": 65535}] = 8000,
    host: Annotated[str, "Address to bind to; all but loopback need --tokens."] = "127.0.0.1",
    tokens: Annotated[File, "TOML file of hashed tokens, each for one user."] = None,
    threads: Annotated[int, "Questions answered at once.", {"min": 1, "max": 64}] = 3,
    timeout: Annotated[float, "Maximum seconds for an answer.", {"min": 1, "max": 600}] = 30.0,
    traces: Annotated[
        Literal["off", "ids", "texts"], "Send OpenTelemetry spans of questions, without or with texts."
    ] = "off",
) -> None:
    """Serve searches and the filter over HTTP until Ctrl+C. /docs describes the addresses.

    A request searches as the user of its token, whatever profile it chooses. Without tokens, only this machine can ask,
    as the user of --level and --department, by default the public."""
    from ragfilter.library.tracing import exported
    from ragfilter.library.workspace import OpenWorkspace
    from ragfilter.service.access import Caller, read_tokens
    from ragfilter.service.routes import Serving, make_app

    loaded, _ = filtering.load()
    if tokens is not None:
        refuse("beside --tokens", level=filtering.level, department=filtering.department)
    elif host not in LOOPBACK:
        message = f"Without tokens, the service does not bind to {host}: anybody could search."
        remedy = "Make tokens with `ragfilter token NAME`, and pass their file with --tokens."
        raise InputError(message, remedy=remedy)
    callers = read_tokens(tokens) if tokens is not None else {}
    anyone = Caller(user=filtering.user or PUBLIC, metrics=tokens is None)
    bound = _bind(host, port)
    with (
        bound,
        OpenWorkspace.open(read_deployment(data_dir=place.data_dir), kind="serve") as bench,
        nullcontext() if traces == "off" else exported(texts=traces == "texts"),
    ):
        backends = place.backends(bench)
        options.warn_learned_elsewhere(loaded.settings, backends)
        # The first question must not wait for the model.
        backends.embedder.embed([""])
        app = make_app(Serving(bench, place.collection, loaded.settings, callers, anyone, threads, timeout))
        if not callers:
            output.tell("without --tokens, only this machine can search, and needs no token")
        address = f"[{host}]" if ":" in host else host
        output.emit(f"http://{address}:{port}  (Ctrl+C stops the service)\n")
        import uvicorn

        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5
        )
        uvicorn.Server(config).run(sockets=[bound])


@command()
def token(
    name: Annotated[str, "Who the token is for."],
    level: Level = 0,
    department: Departments = None,
    collection: Annotated[list[str] | None, "A collection that it can search. Repeatable. Default: all."] = None,
    metrics: Annotated[bool, "Let it read /metrics."] = False,
) -> None:
    """Make a token, and print its entry for the file that `serve --tokens` reads.

    Standard error shows the token once. The entry has only its hash: append it with >>."""
    from ragfilter.service.access import token_hash

    # Random, so that a plain hash is safe.
    token, departments = secrets.token_urlsafe(32), department or []
    entry = {"name": name, "sha256": token_hash(token), "level": level, "departments": departments}
    entry |= ({"collections": collection} if collection else {}) | ({"metrics": True} if metrics else {})
    output.emit(tomlkit.dumps({"token": [entry]}) + "\n", as_file=True)
    output.tell(f"the token of {name}, shown only now: {token}")


def _bind(host: str, port: int) -> socket.socket:
    """The bound socket. Raises InputError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        message = f"Port {port} of {host} is in use or not allowed: {error.strerror or error}."
        raise InputError(message, remedy="Choose another with --port NUMBER.") from None
