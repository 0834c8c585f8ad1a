"""The kept chunks as a plain list, for paper only: on the screen a scrolling table has them."""

from __future__ import annotations

from ragfilter.report import ChunkRow, kept_first
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.look import html
from ragfilter.ui.session.visit import View

MOST = 20
"""As many as fit beside the rest of the page."""
TITLE_WIDTH = 64


def draw(view: View) -> None:
    """Draw the list. Its numbers are those that the answer cites."""
    kept = [row for row in kept_first(view.rows) if row.kept]
    if not kept:
        return
    more = f"<p>and {len(kept) - MOST} more</p>" if len(kept) > MOST else ""
    items = "".join(map(_item, kept[:MOST]))
    html.draw(f'<div class="rf-paper"><h2>Kept</h2><ol>{items}</ol>{more}</div>')


def _item(row: ChunkRow) -> str:
    place = f"rank {row.rank}" if row.rank else row.outcome
    return (
        f"<li>{html.text(short_title(row.title, TITLE_WIDTH))} "
        f"<span>{place}, {numbers.distance(row.distance)}</span></li>"
    )
