"""The command line, with one file for each command. Source: docs/design.md#cli."""

from __future__ import annotations

from ragfilter.basics.extras import extra

with extra("app"):
    import typer as typer

# Each command registers itself when its file is imported.
from ragfilter.cli import (  # noqa: F401
    cache,
    collections,
    compare,
    cut,
    eval,
    experiment,
    gate,
    index,
    labels,
    marks,
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
from ragfilter.cli.app import app as app
from ragfilter.cli.running import main as main
from ragfilter.cli.running import run as run
