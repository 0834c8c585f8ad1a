"""The command group `ragfilter rules`. Importing a command registers it."""

from ragfilter.cli.rules import changes, check, suggest  # noqa: F401
