"""Imports the commands that are used: a query needs none of the files that tune or lint."""

from __future__ import annotations

from importlib import import_module

FILES = {
    "app": ("page",),
    "cache": ("cache",),
    "collections": ("collections",),
    "cut": ("cut",),
    "eval": ("eval",),
    "gate": ("gate",),
    "index": ("index",),
    "labels": ("labels", "marks", "votes"),
    "mcp": ("mcp",),
    "profiles": ("profiles",),
    "query": ("query",),
    "report": ("report",),
    "rules": ("rules",),
    "runs": ("runs",),
    "settings": ("settings",),
    "tune": ("tune",),
}
"""The files of each command. A command registers itself when its file is imported."""


def load(word: str = "") -> None:
    """Import the command called `word`; all of them if there is none, for the help."""
    for name in (word,) if word in FILES else FILES:
        for file in FILES[name]:
            import_module(f"ragfilter.cli.{file}")
