"""The command line. Source: design, section 7."""

from __future__ import annotations

from ragfilter.cli.commands import app, main

__all__ = ["app", "main"]
