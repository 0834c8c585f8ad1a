"""The command line. Source: docs/design.md#cli."""

from __future__ import annotations

from ragfilter.extras import extra

# Before the commands, which are made of it.
with extra("app"):
    import typer as typer

from ragfilter.cli import (
    experiments,
    gate,
    lists,
    mcp,
    rules,
    rules_check,
    rules_matrix,
    rules_suggest,
    rules_testing,
    tuning,
)
from ragfilter.cli.commands import app
from ragfilter.cli.running import main, run

__all__ = [
    "app",
    "experiments",
    "gate",
    "lists",
    "main",
    "mcp",
    "rules",
    "rules_check",
    "rules_matrix",
    "rules_suggest",
    "rules_testing",
    "run",
    "tuning",
]
