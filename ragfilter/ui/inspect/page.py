"""A result on the page: the headline, the curve with the panel next to it, and the table below."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.report import ChunkRow, kept_first
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.inspect import curve_panel, hit_table, needs, panel
from ragfilter.ui.kit import problems, summary
from ragfilter.ui.kit.rule_editor import saving
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import View


def begin(view: View) -> DeltaGenerator:
    """Draw what the user asked for first: the clicked chunk, then the curve. Returns the place of
    what `finish` draws beside the curve."""
    # One container for everything that appears or disappears with a setting; otherwise it would
    # move the curve, and the browser would redraw it.
    with st.container(key="headline"):
        problems.incomplete(view.result.pool.incomplete)
        html.heading(view.asked.query, level=1)
        summary.draw(view)
        problems.failed(view.result)
    with st.container(key="stage"):
        left, beside = st.columns((1.28, 1), gap="medium")
    if _clicked():
        with beside:
            beside = panel.draw(view)
    with left:
        html.heading("Curve")
        curve_panel.draw(view)
        draw_paper(view)
    return beside


def finish(view: View, beside: DeltaGenerator) -> None:
    """Draw the rest. An answer may take time, so the panel that contains it comes last, and so does
    what would change the outcome of a clicked chunk."""
    html.heading("Chunks")
    # Always present, or the table would be redrawn whenever this appears or disappears. Not before
    # the heading: if something above it is gone, a container takes over the content of that place,
    # and the panel would be visible twice until the run ends.
    with st.container():
        needs.draw(view)
    hit_table.draw(view)
    with beside:
        if _clicked():
            panel.finish(view)
        else:
            panel.draw(view)
    saving.keep_all_in_browser()


def _clicked() -> bool:
    return bool(state.session().panel == "Chunk")


MOST_ON_PAPER = 20
"""As many as fit beside the rest of the page."""
TITLE_WIDTH = 64


def draw_paper(view: View) -> None:
    """Draw the list. Its numbers are those that the answer cites."""
    kept = [row for row in kept_first(view.rows) if row.kept]
    if not kept:
        return
    more = f"<p>and {len(kept) - MOST_ON_PAPER} more</p>" if len(kept) > MOST_ON_PAPER else ""
    items = "".join(map(_item, kept[:MOST_ON_PAPER]))
    html.draw(f'<div class="rf-paper"><h2>Kept</h2><ol>{items}</ol>{more}</div>')


def _item(row: ChunkRow) -> str:
    place = f"rank {row.rank}" if row.rank else row.outcome
    return (
        f"<li>{html.text(short_title(row.title, TITLE_WIDTH))} "
        f"<span>{place}, {numbers.distance(row.distance)}</span></li>"
    )
