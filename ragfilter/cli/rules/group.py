"""What the commands of `ragfilter rules` share.

`import`, `undo` and `redo` write, through the journal. The clearance settings in force hold for the
commands that read chunks, and what they leave out is told; the journal is for the one who keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import LOOK, app
from ragfilter.cli.options import Place, Viewing, in_words

if TYPE_CHECKING:
    from ragfilter.cli.rules.select import Selection

FOUND = 1
rules = typer.Typer(
    help="Draft, check, export, import, undo and redo query_must rules.",
    invoke_without_command=True,
    **LOOK,
)
app.add_typer(rules, name="rules")

OneChunk = Annotated[
    str | None,
    typer.Argument(metavar="CHUNK", help="Only this chunk's edits.", callback=in_words),
]


@rules.callback()
def _group(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        parts.emit(f"{context.get_help()}\n")


def select_rules(place: Place, viewing: Viewing, where: Sequence[str] | None) -> Selection:
    """The selected chunks that have a rule; what is missing among them is told."""
    user = viewing.viewer
    from ragfilter.cli.rules.select import select

    with place.open("rules") as bench:
        selected = select(
            bench.collection(place.collection), [*(where or ()), "rule=any"], user=user
        )
    parts.tell(selected.notice)
    return selected
