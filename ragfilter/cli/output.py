"""The output of a command: its result, text or with `--json` one JSON document; the rest goes to standard error."""

from __future__ import annotations

import atexit
import dataclasses
import io
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer
from pydantic import BaseModel

from ragfilter.basics.files import write_text
from ragfilter.errors import Action, InputError, RagfilterError
from ragfilter.protocols import Progress
from ragfilter.rules.rule import AnyRule
from ragfilter.text.normalise import mend_characters

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

log = logging.getLogger(__name__)

UNUSABLE = 2
OTHER_OUT = "Use another file with --out."
UNSHOWN = "\N{REPLACEMENT CHARACTER}"
UNBOUNDED = 10_000
"""The width of a table outside a terminal, so that no cell is wrapped."""
# A path or name so long that it would push the rest of a message out of sight.
_ENDLESS = re.compile(r"(\S{200})\S{200,}(\S{100})")
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_bars: list[Bar] = []

COMMANDS: Mapping[Action, str] = {
    "index": "For the demo: `ragfilter index demo --collection demo`.",
    "finish": "Run the same `ragfilter index` command again.",
    "rebuild": "Run `ragfilter index --rebuild --collection NAME`. If it fails too, follow its message.",
    "replace": "Use `ragfilter index --reset` to replace it.",
    "writable": "Use `ragfilter collections open --writable` to allow them.",
    "open": "Use `ragfilter collections open NAME --model MODEL`.",
    "close": "Use `ragfilter collections close`.",
    "runs": "See `ragfilter runs list`.",
    "baseline": "Use `ragfilter gate --update-baseline`.",
    "tune": "Use `ragfilter tune --out FILE`.",
    "recalibrate": "Use `ragfilter recalibrate --from FILE --out FILE`.",
    "label": "Use `ragfilter labels import`.",
    "settings": "`ragfilter settings` lists all settings.",
    "folder": "Choose another folder with --data-dir or RAGFILTER_DATA_DIR.",
}
"""Action of an error → the command or flag that carries it out."""


as_json = False
"""Whether the command that runs was given --json."""


def show(document: object, *lines: str) -> None:
    """Write a result: `document` as JSON, or the `lines`, without empty ones, for people."""
    emit(document if as_json else text_of(*lines))


def text_of(*lines: str) -> str:
    """Join these lines without empty ones. A line may have several lines, such as a table."""
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines if line)


def emit(result: object, *, as_file: bool = False) -> bool:
    """Write the result: a text, or a document as JSON. Returns whether a file or pipe took all of it. A reader that has
    gone away (`| head`) is not an error.

    Control characters that a terminal would execute are replaced; a file or pipe gets them. Characters that the
    encoding of standard output lacks are escaped in JSON and replaced in text, but text written `as_file` is UTF-8."""
    _end_bar()
    shown = sys.stdout.isatty()
    if isinstance(result, str):
        # A file name may contain bytes that are not valid text.
        text = mend_characters(result)
        if as_file and not shown and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
    else:
        is_utf8 = (sys.stdout.encoding or "utf-8").lower() == "utf-8"
        text = json.dumps(result, ensure_ascii=not is_utf8, allow_nan=False, indent=2, default=plain)
        text = mend_characters(text + "\n")
    try:
        sys.stdout.write(_OBEYED.sub(UNSHOWN, text) if shown else text)
        sys.stdout.flush()
    except OSError as error:
        # Otherwise, the interpreter would fail again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise InputError(
                f"Standard output cannot be written: {error.strerror}.", remedy="Free some space, or write elsewhere."
            ) from None
        return False
    return not shown


def write(content: str, out: Path | None, prefix: str = "") -> bool:
    """Write a file to `out`, with a notice, or as `emit` does. Returns whether all is written. Raises InputError."""
    if out is None:
        return emit(content, as_file=True)
    write_text(out, content, remedy=OTHER_OUT)
    emit(f"{prefix}{out}\n")
    return True


def plain(value: object) -> Any:
    """Convert a rule, dataclass, model, time or path to a JSON value. Raises TypeError for others."""
    if isinstance(value, AnyRule):
        return value.text
    if isinstance(value, BaseModel):
        return value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def table(head: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """Left-aligned columns below a header, wrapped only on a narrow terminal. Markup is not interpreted."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in head:
        drawn.add_column(Text(name), overflow="fold")
    for line in body:
        drawn.add_row(*(Text(str(cell)) for cell in line))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else UNBOUNDED
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    with console.capture() as captured:
        console.print(drawn)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def percent(share: float | None) -> str:
    """``87.5%``; ``-`` for None."""
    return "-" if share is None else f"{100 * share:.1f}%"


def progress(what: str) -> Progress:
    """A progress bar on standard error, or a count if the total is unknown. Without a terminal, nothing is shown."""
    start = cache(_start_bar)

    def advance(done: int, total: int) -> None:
        if sys.stderr.isatty():
            bar = start(what)
            bar.update(bar.task_ids[0], completed=done, total=total or None)
            if done >= total > 0:
                bar.refresh()
                bar.stop()

    return advance


def _start_bar(what: str) -> Bar:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False)
    bar = Bar(*columns, TimeRemainingColumn(), console=Console(stderr=True))
    bar.add_task(what, total=None)
    _end_bar()
    bar.start()
    _bars.append(bar)
    return bar


@atexit.register
def _end_bar() -> None:
    """End the current bar, so that the next output has its own line and a visible cursor."""
    while _bars:
        _bars.pop().stop()


def tell(notice: str) -> None:
    """Write one line to standard error, unless it is empty."""
    if notice:
        _end_bar()
        typer.echo(notice, err=True)


def warn(warning: str) -> None:
    """Log a warning, unless it is empty."""
    if warning:
        _end_bar()
        log.warning("%s", warning)


def fail(error: RagfilterError | str) -> int:
    """Write an error to standard error, with the command that helps, always as one line. Returns the exit code."""
    command = "" if isinstance(error, str) else COMMANDS.get(error.action, "")
    tell(_ENDLESS.sub(r"\1…\2", " ".join(f"ragfilter: {error} {command}".split())))
    return UNUSABLE


# logs


LogFormat = Literal["text", "json"]


class JsonLines(logging.Formatter):
    """One JSON object per line. The record's `fields` appear under their own names."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def start_logging(verbose: int, form: LogFormat | None = None) -> None:
    """Log warnings, and more if `verbose`. A `form` logs at least one line per query."""
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(max(verbose, bool(form)), 2)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else logging.Formatter("%(levelname)s %(message)s"))
    warnings: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        """A warning about a collection would repeat for each query, so it is logged once."""
        text = record.getMessage()
        is_repeated = record.levelno == logging.WARNING and text in warnings
        warnings.add(text)
        return not is_repeated

    handler.addFilter(is_new)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    # Only our own logger: the libraries are noisy, and what they log seldom helps.
    logging.getLogger("ragfilter").setLevel(level)
