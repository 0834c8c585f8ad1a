"""Help on the page: a tour of five stops and the glossary, in a drawer on the right.

It opens by itself on the first visit. Only the browser knows which visit is the first.
"""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.kit.help import tour
from ragfilter.ui.kit.help.terms import TERMS
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources

_first_visit = st.components.v2.component(
    "ragfilter.first_visit",
    js="""export default ({ setTriggerValue }) => {
      if (localStorage.getItem("ragfilter-toured")) return
      localStorage.setItem("ragfilter-toured", "yes")
      setTriggerValue("first", true)
    }""",
)


def draw(resources: Resources) -> None:
    """Draw the button that opens the drawer. The drawer does not open by itself for a link to a
    question, since its reader came for the result."""
    first = False
    if state.session().asked is None and not state.session().pending:
        first = bool(_first_visit(key="first-visit", on_first_change=lambda: None).first)
    with st.container(key="guide", width="content"):
        pressed = st.button(
            "Help",
            key="help-button",
            shortcut="H",
            icon=":material/help:",
            type="tertiary",
            help="A tour of five stops, and what the words mean. The menu at the top right has the "
            "theme: light, dark or the system's.",
        )
    if pressed or first:
        _drawer(resources)
    tour.draw()


@st.dialog("Help", position="right")
def _drawer(resources: Resources) -> None:
    st.markdown("**Five stops**")
    stops = (f"{n}. **{stop.name}.** {stop.said}" for n, stop in enumerate(tour.STOPS, 1))
    st.markdown("\n".join(stops))
    if st.button(
        "Take the tour",
        key="tour-begin",
        type="primary",
        icon=":material/tour:",
        on_click=tour.begin,
        args=(resources,),
        help="Goes from stop to stop on the page, with an example if nothing was asked yet.",
    ):
        st.rerun()
    st.markdown("**Words**")
    st.markdown("\n".join(f"- **{word}**: {meaning}" for word, meaning in TERMS.items()))
