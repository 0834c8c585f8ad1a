"""A result on the page: the headline, the curve with the panel next to it, and the table below."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.ui.inspect import needs, paper, table
from ragfilter.ui.inspect.curve import panel as curve
from ragfilter.ui.inspect.panels import labels, panel
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
        if labels.blind():
            labels.draw_hidden()
        else:
            curve.draw(view)
            paper.draw(view)
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
    if labels.blind():
        labels.draw_hidden()
    else:
        table.draw(view)
    with beside:
        if _clicked():
            panel.finish(view)
        else:
            panel.draw(view)
    saving.keep_all_in_browser()


def _clicked() -> bool:
    return bool(state.session().panel == "Chunk")
