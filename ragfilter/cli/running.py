"""Runs a command: its exit code, and how errors and interruptions end it.

Source: docs/design.md#cli. Exit codes: 0 done; 1 a check failed; 2 the request could not be carried
out, with one line on standard error; 130 stopped by Ctrl+C or SIGTERM.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn, cast

import typer
from pydantic import ValidationError

from ragfilter.basics.deadline import given_up
from ragfilter.cli.app import app, load_commands
from ragfilter.cli.output import fail
from ragfilter.errors import RagfilterError, complaint

log = logging.getLogger(__name__)

STOPPED = 130


def run() -> NoReturn:
    """The entry point of the shell command; exits with the command's exit code."""
    # A text is shown with what cannot be written replaced, also by `--help`.
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
            load_commands(words[0] if words else "")
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
        return fail(
            f"Unexpected {type(error).__name__}: {words}. Run again with -v for the traceback."
        )
    if code == STOPPED:
        typer.echo("Stopped.", err=True)
    return code if isinstance(code, int) else 0


@contextlib.contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """While a command runs, SIGTERM stops it as Ctrl+C does: finished work is reported, and the
    workspace is released. A handler installed by the process itself is kept."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def stop(*_: object) -> None:
        # `timeout` sends it twice, and the second one must not cut the report short.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
