"""`python -m ragfilter` is the `ragfilter` command."""

from __future__ import annotations

import sys
from typing import NoReturn

from ragfilter.errors import DependencyError


def start() -> NoReturn:
    """Run the command line, or say what to install for it."""
    try:
        from ragfilter.cli.program import run
    except DependencyError as error:
        print(f"ragfilter: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    run()


if __name__ == "__main__":
    start()
