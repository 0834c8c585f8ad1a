"""The command line, with one file for each command. Source: docs/design.md#cli."""

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
    labels,
    mcp,
    profiles,
    query,
    report,
    rules,
    runs,
    settings,
    sweep,
    tune,
    votes,
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
    "labels",
    "main",
    "mcp",
    "profiles",
    "query",
    "report",
    "rules",
    "run",
    "runs",
    "settings",
    "sweep",
    "tune",
    "votes",
]
