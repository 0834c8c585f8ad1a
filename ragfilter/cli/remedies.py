"""Adds the matching command or flag to the remedy of an error."""

from __future__ import annotations

from collections.abc import Mapping

from ragfilter.errors import Action, RagfilterError

COMMANDS: Mapping[Action, str] = {
    "index": "For the demo: `ragfilter index demo --collection demo`.",
    "finish": "Run the same `ragfilter index` command again.",
    "rebuild": "Run `ragfilter index --rebuild --collection NAME`. If it fails too, follow its "
    "message.",
    "replace": "Use `ragfilter index --reset` to replace it.",
    "writable": "Use `ragfilter collections open --writable` to allow them.",
    "open": "Use `ragfilter collections open NAME --model MODEL`.",
    "close": "Use `ragfilter collections close`.",
    "runs": "See `ragfilter runs list`.",
    "baseline": "Use `ragfilter gate --update-baseline`.",
    "tune": "Use `ragfilter tune --out FILE`.",
    "label": "Use `ragfilter labels import`.",
    "rest": "Add --rest for that.",
    "settings": "`ragfilter settings` lists all settings.",
    "folder": "Choose another folder with --data-dir or RAGFILTER_DATA_DIR.",
}


def add_command(error: RagfilterError) -> str:
    """The error message, with the command that helps, if there is one."""
    return f"{error} {COMMANDS.get(error.action, '')}".rstrip()
