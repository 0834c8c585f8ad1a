"""The command line, with one file for related commands. Source: docs/design.md#cli."""
