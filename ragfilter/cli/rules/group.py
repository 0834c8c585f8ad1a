"""Code shared by the commands of `ragfilter rules`.

`import`, `bulk`, `lint --fix`, `undo` and `redo` write through the journal. Commands that read
chunks leave out what the current clearance settings hide. The journal is for the owner of the
workspace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ragfilter.cli import parts
from ragfilter.cli.app import make_group
from ragfilter.cli.options import Place, Viewing, text_argument
from ragfilter.cli.rules.select import Selection, select

FOUND = 1
rules = make_group(
    "rules",
    "List, suggest, check, measure, test, fix, change, export, import, undo and redo "
    "query_must rules.",
)

OneChunk = Annotated[
    str | None, text_argument(metavar="CHUNK", help="List only this chunk's edits.")
]


def select_rules(place: Place, viewing: Viewing, where: Sequence[str] | None) -> Selection:
    """The selected chunks that have a rule. Missing ones are reported."""
    user = viewing.viewer

    with place.open("rules") as bench:
        selected = select(bench, place.collection, [*(where or ()), "rule=any"], user=user)
    parts.tell(selected.incomplete)
    return selected
