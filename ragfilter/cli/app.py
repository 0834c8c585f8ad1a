"""The program, and how commands are added to it. Source: docs/design.md#cli.

Standard output has only the result; with `--json`, one JSON document. Progress and logs go to
standard error. Exit codes are in `ragfilter.cli.running`.

Modules that take long to import (torch, chromadb) are imported inside the commands, so that
`--help` and `cut` answer at once.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from ragfilter import __version__
from ragfilter.cli import output
from ragfilter.cli.options import LogForm, Verbose, in_words
from ragfilter.cli.output import start_logging

Command = TypeVar("Command", bound=Callable[..., Any])

LOOK: dict[str, Any] = {
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class SortedGroup(TyperGroup):
    """Lists its commands by name, whichever were imported first."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands)


app = typer.Typer(
    cls=SortedGroup,
    help="See, tune and explain what is filtered out between a vector search and a prompt.",
    pretty_exceptions_enable=False,
    add_completion=False,
    **LOOK,
)


def make_group(name: str, about: str) -> typer.Typer:
    """A group of commands, which prints its help if no command is given."""
    group = typer.Typer(help=about, invoke_without_command=True, **LOOK)

    @group.callback()
    def help_(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            output.emit(f"{context.get_help()}\n")

    app.add_typer(group, name=name)
    return group


def command(
    group: typer.Typer = app, name: str | None = None, **given: Any
) -> Callable[[Command], Command]:
    """Decorator that adds a function to `group` as a command.

    A parameter whose type is a group of options (a dataclass) adds all of them. One that is
    annotated with a text is an option of its name with this help, or an argument if it has no
    default. Every command accepts `--verbose` and `--log`.
    """

    def register(function: Command) -> Command:
        options: list[inspect.Parameter] = []
        groups: dict[str, tuple[type[Any], list[str]]] = {}
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            kind = parameter.annotation
            if dataclasses.is_dataclass(kind) and isinstance(kind, type):
                # Each in the module of the class that adds it.
                hints = get_type_hints(kind, include_extras=True)
                members = inspect.signature(kind).parameters.values()
                groups[parameter.name] = kind, [member.name for member in members]
                options += (_declared(each, hints[each.name]) for each in members)
            else:
                options.append(_declared(parameter, kind))
        keyword = inspect.Parameter.KEYWORD_ONLY
        options.append(inspect.Parameter("verbose", keyword, default=0, annotation=Verbose))
        options.append(inspect.Parameter("log", keyword, default=None, annotation=LogForm))

        @functools.wraps(function)
        def run(**values: Any) -> Any:
            start_logging(values.pop("verbose"), values.pop("log"))
            for name, (kind, members) in groups.items():
                values[name] = kind(**{member: values.pop(member) for member in members})
            return function(**values)

        taken = [option.replace(kind=keyword) for option in options]
        run.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        del run.__wrapped__
        run.__annotations__ = {}
        group.command(name, **given)(run)
        return function

    return register


def _declared(parameter: inspect.Parameter, annotation: Any) -> inspect.Parameter:
    """The parameter as typer reads it."""
    kind, *details = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    if details and isinstance(details[0], str):
        types = (kind, *get_args(kind))
        callback = in_words if str in types or list[str] in types else None
        name = parameter.name.replace("_", "-")
        off = f"/--no-{name}" if parameter.default is True else ""
        details[0] = (
            typer.Argument(help=details[0], callback=callback)
            if parameter.default is inspect.Parameter.empty
            else typer.Option(f"--{name}{off}", help=details[0], callback=callback)
        )
        annotation = Annotated[kind, details[0]]
    return parameter.replace(annotation=annotation)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        output.emit(f"ragfilter {__version__}\n")
        raise typer.Exit
    if context.invoked_subcommand is None:
        output.emit(f"{context.get_help()}\n")


MODULES = {
    **{name: name for name in (
        "cache", "collections", "cut", "eval", "gate", "index", "labels", "query", "recalibrate",
        "report", "rules", "runs", "settings", "tune", "workspace",
    )},
    "app": "serve",
    "fit-reranker": "fit_reranker",
    "mcp": "serve",
    "profiles": "settings",
    "serve": "service",
    "token": "service",
}  # fmt: skip
"""The module of each command. A command registers itself when its module is imported."""


def load_commands(name: str = "") -> None:
    """Import the command called `name`, since a query needs none of the modules that tune or lint;
    without a name, all of them for the help."""
    for module in (MODULES[name],) if name in MODULES else MODULES.values():
        import_module(f"ragfilter.cli.{module}")
