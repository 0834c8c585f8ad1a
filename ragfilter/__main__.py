"""`python -m ragfilter` is the `ragfilter` command."""

from __future__ import annotations

from ragfilter.cli import run

run()
