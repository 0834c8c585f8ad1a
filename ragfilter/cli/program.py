"""The program: how commands are registered, run and end. Source: docs/design.md#cli.

Standard output has only the result; with `--json`, one JSON document. Progress and logs go to standard error. Exit
codes: 0 done; 1 a check failed; 2 the request could not be carried out, with one line on standard error; 130 stopped by
Ctrl+C or SIGTERM.

A command's module is imported only when the command runs, so that `--help` and `cut` are fast."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from ragfilter import __version__
from ragfilter.basics.threads import given_up
from ragfilter.errors import RagfilterError, complaint, extra

with extra("app"):
    import typer
    from typer.core import TyperGroup

    from ragfilter.cli import output
    from ragfilter.cli.options import Json, LogForm, Verbose, mended
    from ragfilter.cli.output import fail, start_logging

Command = TypeVar("Command", bound=Callable[..., Any])

LOOK: dict[str, Any] = {"rich_markup_mode": None, "context_settings": {"help_option_names": ["-h", "--help"]}}


MODULES = {
    "app": ("serve", "Start the app and print its address."),
    "collections": ("collections", "List, export and delete the collections of the workspace."),
    "cut": ("cut", "Apply the cutoff to a list of distances."),
    "eval": ("eval", "Measure settings on labelled queries."),
    "fit-reranker": ("tune", "Fit a reranker's scores to labels."),
    "gate": ("gate", "Fail if metrics break a limit or fall below a baseline."),
    "index": ("index", "Index chunks into a collection."),
    "labels": ("labels", "Make, import, export, list and propose labels."),
    "mcp": ("serve", "Serve the tools search_chunks and get_chunks to an agent."),
    "query": ("query", "Query a collection and see what is kept, and why."),
    "recalibrate": ("tune", "Tune again after a change of model, chunking or corpus."),
    "report": ("report", "Write an HTML report: of a query, a run, or two runs compared."),
    "rules": ("rules", "List, suggest, check, measure, test and change query_must rules."),
    "runs": ("runs", "List, show, compare and remove what `eval --save` measured."),
    "serve": ("serve", "Serve searches and the filter over HTTP until Ctrl+C."),
    "settings": ("settings", "Print the settings reference (Markdown)."),
    "token": ("serve", "Make a token for the service."),
    "tune": ("tune", "Find the cutoff that suits labelled queries best."),
    "workspace": ("collections", "Copy the workspace to another place."),
}
"""Command → its module, which registers it when imported, and its summary."""


class Commands(TyperGroup):
    """Lists the commands without importing them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in MODULES.items()])


app = typer.Typer(
    cls=Commands,
    help="See, tune and explain what a filter drops between a vector search and a prompt.",
    pretty_exceptions_enable=False,
    add_completion=False,
    **LOOK,
)


def make_group(name: str) -> typer.Typer:
    """Make a group of commands that prints its help if no command is given."""
    group = typer.Typer(help=MODULES[name][1], invoke_without_command=True, **LOOK)

    @group.callback()
    def help_(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            output.emit(f"{context.get_help()}\n")

    app.add_typer(group, name=name)
    return group


def command(
    group: typer.Typer = app, name: str | None = None, *, json: bool = False, **given: Any
) -> Callable[[Command], Command]:
    """Decorator that adds a function to `group` as a command; with `json`, it accepts `--json`.

    A parameter whose type is a group of options (a dataclass) adds all of them. A parameter that is annotated with
    texts is an option, or an argument if it has no default. Texts that begin with a dash are its names (default: the
    parameter's), the other text is its help, and a mapping has further arguments of `typer.Option`. Every command
    accepts `--verbose` and `--log`."""

    def register(function: Command) -> Command:
        options: list[inspect.Parameter] = []
        groups: dict[str, tuple[type[Any], list[str]]] = {}
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            kind = parameter.annotation
            if dataclasses.is_dataclass(kind) and isinstance(kind, type):
                # Resolve each hint in the module of the class that adds it.
                hints = get_type_hints(kind, include_extras=True)
                members = inspect.signature(kind).parameters.values()
                groups[parameter.name] = kind, [member.name for member in members]
                options += (_declared(each, hints[each.name]) for each in members)
            else:
                options.append(_declared(parameter, kind))
        keyword = inspect.Parameter.KEYWORD_ONLY
        if json:
            options.append(inspect.Parameter("json", keyword, default=False, annotation=Json))
        options.append(inspect.Parameter("verbose", keyword, default=0, annotation=Verbose))
        log = inspect.Parameter("log", keyword, default=None)
        options.append(_declared(log, LogForm))

        @functools.wraps(function)
        def run(**values: Any) -> Any:
            start_logging(values.pop("verbose"), values.pop("log"))
            output.as_json = values.pop("json", False)
            for name, (kind, members) in groups.items():
                values[name] = kind(**{member: values.pop(member) for member in members})
            return function(**values)

        keywords = [option.replace(kind=keyword) for option in options]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        del run.__wrapped__
        run.__annotations__ = {}
        group.command(name, **given)(run)
        return function

    return register


def _declared(parameter: inspect.Parameter, annotation: Any) -> inspect.Parameter:
    """The parameter in the form that typer reads."""
    kind, *details = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if details and isinstance(details[0], str):
        types = (kind, *get_args(kind))
        is_text = str in types or list[str] in types
        more: dict[str, Any] = {"callback": mended if is_text else None}
        more |= details.pop() if isinstance(details[-1], dict) else {}
        *names, more["help"] = details
        name = parameter.name.replace("_", "-")
        off = f"/--no-{name}" if parameter.default is True else ""
        declared = (
            typer.Argument(**more)
            if parameter.default is inspect.Parameter.empty
            else typer.Option(*(names or [f"--{name}{off}"]), **more)
        )
        annotation = Annotated[kind, declared]
    return parameter.replace(annotation=annotation)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    if version:
        output.emit(f"ragfilter {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        output.emit(f"{context.get_help()}\n")


def load_commands(name: str = "") -> None:
    """Import the command called `name`, or all commands if there is none."""
    for module, _ in (MODULES[name],) if name in MODULES else MODULES.values():
        import_module(f"ragfilter.cli.{module}")


log = logging.getLogger(__name__)

STOPPED = 130


def run() -> NoReturn:
    """The entry point of the shell command; exits with the command's exit code."""
    # Replace characters that cannot be written, even by `--help`.
    cast(io.TextIOWrapper, sys.stdout).reconfigure(errors="replace")
    code = main()
    if given_up():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def main(args: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Errors become one line on standard error."""
    words = sys.argv[1:] if args is None else args
    try:
        with _sigterm_as_interrupt():
            if words and not words[0].startswith("-"):
                load_commands(words[0])
            code = app(args=args, prog_name="ragfilter", standalone_mode=False)
    except RagfilterError as error:
        return fail(error)
    except typer.TyperException as error:
        message = error.format_message()
        if isinstance(error.__cause__, ValidationError):
            option, _, why = message.removeprefix("Invalid value for ").partition(": ")
            option = option.replace("'", "")
            message = f"{option}: {complaint(why)}"
        end = "" if message.endswith((".", "?", "!")) else "."
        context = getattr(error, "ctx", None)
        where = context.command_path if context else "ragfilter"
        return fail(f"{message}{end} See `{where} --help`.")
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except Exception as error:
        if log.isEnabledFor(logging.INFO):
            log.exception("unexpected")
        words = " ".join(str(error).split())[:300]
        return fail(f"Unexpected {type(error).__name__}: {words}. Run again with -v for the traceback.")
    if code == STOPPED:
        typer.echo("Stopped.", err=True)
    return code if isinstance(code, int) else 0


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """While a command runs, SIGTERM stops it like Ctrl+C, unless the process has a handler of its own."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def stop(*_: object) -> None:
        # `timeout` sends SIGTERM twice, and the second one must not cut the report short.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
