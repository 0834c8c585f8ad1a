"""The command line: one file a command. Source: docs/design.md#cli."""

from __future__ import annotations

from ragfilter.extras import extra

# Before the commands, which are made of it.
with extra("app"):
    import typer as typer

from ragfilter.cli import (
    cache,
    collections,
    compare,
    cut,
    eval,
    experiment,
    gate,
    index,
    mcp,
    profiles,
    query,
    rules,
    settings,
    tune,
)
from ragfilter.cli.app import app
from ragfilter.cli.running import main, run

__all__ = [
    "app",
    "cache",
    "collections",
    "compare",
    "cut",
    "eval",
    "experiment",
    "gate",
    "index",
    "main",
    "mcp",
    "profiles",
    "query",
    "rules",
    "run",
    "settings",
    "tune",
]
