"""The command group `ragfilter rules`, with one file per command. Source: docs/design.md#rules."""

from ragfilter.cli.rules import (  # noqa: F401 (importing a command registers it)
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
