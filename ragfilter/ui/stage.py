"""Everything of a result that a click changes: curve, panel and table, drawn anew without the rest.

The page draws it as a fragment: opening a chunk or turning to another panel reruns this part alone,
not the sidebar with its many controls. Sliders and questions rerun the whole page.
"""

from __future__ import annotations

import streamlit as st

from ragfilter.report import rows
from ragfilter.types import Result
from ragfilter.ui import asking, curve_panel, needs, panel, table
from ragfilter.ui.resources import Resources
from ragfilter.ui.state import Asked


def draw(result: Result, mine: Result, asked: Asked, resources: Resources, *, wider: bool) -> None:
    """Draw the stage. `mine` is the result as the user sees it; `wider`: asking again would bring
    what the pool lacks."""
    if st.session_state.pending or asking.wished() is not None:
        # Pressed in here, done by the page.
        st.rerun()
    operator = bool(st.session_state.operator)
    view = result if operator else mine
    shown = rows(view, as_operator=operator)
    with st.container(key="stage"):
        left, right = st.columns((1.28, 1), gap="medium")
    below = st.container()
    # What was clicked for comes first. An answer may take its time, so it comes last.
    first = st.session_state.panel == "Chunk"
    if first:
        with right:
            panel.draw(result, mine, asked, resources)
    with left:
        curve_panel.draw(view, shown)
    with below:
        table.draw(view, shown, rows(mine) if operator else shown)
        # It floats. Above the others, they would be drawn anew whenever it comes or goes.
        needs.draw(result, resources, wider=wider)
    if not first:
        with right:
            panel.draw(result, mine, asked, resources)
