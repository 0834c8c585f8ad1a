"""The command line, with one file for each command. Source: docs/design.md#cli."""

from __future__ import annotations

from ragfilter.errors import extra

with extra("app"):
    import typer as typer

from ragfilter.cli.app import app as app
from ragfilter.cli.app import main as main
from ragfilter.cli.app import run as run
