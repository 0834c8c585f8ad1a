"""The command line, with one file for each command. Source: docs/design.md#cli."""

from __future__ import annotations

from ragfilter.extras import extra

# Before the commands, which are made of it.
with extra("app"):
    import typer as typer

from ragfilter.cli import (
    cache as cache,
)
from ragfilter.cli import (
    collections as collections,
)
from ragfilter.cli import (
    compare as compare,
)
from ragfilter.cli import (
    cut as cut,
)
from ragfilter.cli import (
    eval as eval,
)
from ragfilter.cli import (
    experiment as experiment,
)
from ragfilter.cli import (
    gate as gate,
)
from ragfilter.cli import (
    index as index,
)
from ragfilter.cli import (
    labels as labels,
)
from ragfilter.cli import (
    mcp as mcp,
)
from ragfilter.cli import (
    profiles as profiles,
)
from ragfilter.cli import (
    query as query,
)
from ragfilter.cli import (
    report as report,
)
from ragfilter.cli import (
    rules as rules,
)
from ragfilter.cli import (
    runs as runs,
)
from ragfilter.cli import (
    settings as settings,
)
from ragfilter.cli import (
    sweep as sweep,
)
from ragfilter.cli import (
    tune as tune,
)
from ragfilter.cli import (
    votes as votes,
)
from ragfilter.cli.app import app as app
from ragfilter.cli.running import main as main
from ragfilter.cli.running import run as run
