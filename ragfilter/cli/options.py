"""The options that several commands share, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.settings.profiles import DEFAULT, PROFILES
from ragfilter.settings.schema import field
from ragfilter.text.characters import whole


def help_of(path: str) -> str:
    """The help of a flag that sets the setting at `path`."""
    info = field(path)
    return f"{info.help} Sets {path}: {info.allowed()}."


def in_words(value: Any) -> Any:
    """The callback of what is text and no file's name: bytes that are no text are replaced."""
    if isinstance(value, str):
        return whole(value)
    return [whole(item) for item in value] if value else value


CollectionName = Annotated[
    str,
    typer.Option(
        "--collection",
        "-c",
        help="Name of the collection.",
        show_default=True,
        callback=in_words,
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option("--profile", "-p", help=f"{', '.join(PROFILES)}. Default: {DEFAULT}."),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="Settings file (TOML, one [section] per layer).")
]
SetValues = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set any setting, as layer.field=value. Repeatable."),
]
Level = Annotated[
    int | None,
    typer.Option("--level", min=0, help="The user's clearance, where the clearance layer is on."),
]
Departments = Annotated[
    list[str] | None,
    typer.Option("--department", help="A department of the user; may be repeated."),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Workspace folder; also RAGFILTER_DATA_DIR."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Verbose = Annotated[
    int,
    typer.Option("--verbose", "-v", count=True, help="Log more to standard error; -vv logs most."),
]
GapThreshold = Annotated[
    str | None,
    typer.Option("--gap-threshold", metavar="NUMBER", help=help_of("cutoff.gap_threshold")),
]

# labelled queries

QueriesFile = Annotated[
    str, typer.Option("--queries", help="Path of queries.jsonl, or demo or adsapi for their own.")
]
QrelsFile = Annotated[
    str | None,
    typer.Option(
        "--qrels",
        help="Path of qrels.tsv; demo and adsapi have their own. Precision and recall need it.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", help="Only this query id. Repeatable.", callback=in_words),
]
Except = Annotated[
    list[str] | None,
    typer.Option("--except", help="Leave out this query id. Repeatable.", callback=in_words),
]
# Above it a number no longer fits into what takes it: SQLite, a slice.
MOST = 1_000_000_000
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, max=MOST, help="Only the first N of those queries."),
]

# chunks

WHERE_HELP = (
    "Only chunks with field=value. Fields: type, source, id, title (* matches anything, case is "
    "ignored) and rule (any or none). Repeatable; all conditions must hold."
)

Where = Annotated[list[str] | None, typer.Option("--where", help=WHERE_HELP, callback=in_words)]
