"""The command group `ragfilter rules`, one file a command. Source: docs/design.md#rules."""

from __future__ import annotations

from ragfilter.cli.rules import (
    check,
    export,
    history,
    import_,
    lint,
    matrix,
    suggest,
    test,
    undo,
)

__all__ = [
    "check",
    "export",
    "history",
    "import_",
    "lint",
    "matrix",
    "suggest",
    "test",
    "undo",
]
