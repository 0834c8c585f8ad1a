"""What the command line adds to an error: its own command or flag for what the remedy says."""

from __future__ import annotations

from collections.abc import Mapping

from ragfilter.errors import Action, RagfilterError

COMMANDS: Mapping[Action, str] = {
    "index": "For the demo: `ragfilter index demo --collection demo`.",
    "finish": "Run the same `ragfilter index` command again.",
    "rebuild": "Run `ragfilter index --rebuild --collection NAME`.",
    "replace": "`ragfilter index` replaces it with --reset.",
    "writable": "`ragfilter collections open --writable` allows them.",
    "close": "`ragfilter collections close` does so.",
    "runs": "See `ragfilter runs list`.",
    "baseline": "`ragfilter gate --update-baseline` does so.",
    "folder": "--data-dir or RAGFILTER_DATA_DIR names another folder.",
}


def told(error: RagfilterError) -> str:
    """The error in words, with the command that helps, where there is one."""
    return f"{error} {COMMANDS.get(error.action, '')}".rstrip()
