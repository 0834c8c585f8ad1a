"""The command group `ragfilter rules`. Source: docs/design.md#rules."""

from ragfilter.cli.rules import (  # noqa: F401 (importing a command registers it)
    changes,
    check,
    listing,
    suggest,
)
