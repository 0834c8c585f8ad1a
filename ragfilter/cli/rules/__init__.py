"""The command group `ragfilter rules`, with one file per command. Source: docs/design.md#rules."""

from __future__ import annotations

from ragfilter.cli.rules import (
    bulk,
    check,
    export,
    history,
    import_,
    lint,
    list,
    matrix,
    suggest,
    test,
    undo,
)

__all__ = [
    "bulk",
    "check",
    "export",
    "history",
    "import_",
    "lint",
    "list",
    "matrix",
    "suggest",
    "test",
    "undo",
]
