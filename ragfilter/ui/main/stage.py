"""A result on the page: the headline, the curve and the panel beside it, the table below."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.ui.curve import panel as curve
from ragfilter.ui.look import html
from ragfilter.ui.main import needs, problems, summary, table
from ragfilter.ui.panels import labels, panel
from ragfilter.ui.session.visit import View


def begin(view: View) -> DeltaGenerator:
    """Draw what was asked for first: the chunk that was clicked, then the curve. Return the place
    of the panel."""
    # One place for what comes and goes with a setting: it would move the curve, and the browser
    # would make that anew.
    with st.container(key="headline"):
        problems.incomplete(view.result.pool.incomplete)
        html.heading(view.asked.query, level=1)
        summary.draw(view)
    with st.container(key="stage"):
        left, right = st.columns((1.28, 1), gap="medium")
    if _clicked():
        with right:
            panel.draw(view)
    with left:
        html.heading("Curve")
        if labels.blind():
            labels.draw_hidden()
        else:
            curve.draw(view)
    return right


def finish(view: View, beside: DeltaGenerator) -> None:
    """Draw the rest. An answer may take its time, so the panel that holds it comes last."""
    html.heading("Chunks")
    # Its place is always there, or the table would be drawn anew whenever it comes or goes. Not
    # before the heading: where something above has gone, a container takes over what stood in its
    # place, and the panel would be seen twice until the run ends.
    with st.container():
        problems.failed(view.result)
        needs.draw(view)
    if labels.blind():
        labels.draw_hidden()
    else:
        table.draw(view)
    if not _clicked():
        with beside:
            panel.draw(view)


def _clicked() -> bool:
    return bool(st.session_state.panel == "Chunk")
