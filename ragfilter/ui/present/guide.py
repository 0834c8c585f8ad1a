"""Help on the page: a tour of five stops, and the words, in a drawer at the right.

It opens by itself at the first visit, which only the browser knows to be one.
"""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.present.terms import TERMS
from ragfilter.ui.session import state

_first_visit = st.components.v2.component(
    "ragfilter.first_visit",
    js="""export default ({ setTriggerValue }) => {
      if (localStorage.getItem("ragfilter-toured")) return
      localStorage.setItem("ragfilter-toured", "yes")
      setTriggerValue("first", true)
    }""",
)

STOPS = (
    ("Question", "Type one and press Enter, or click an example. One search finds candidates; "
     "everything else is decided from what it found."),
    ("Strip", "How many chunks are kept, why the list ends there, what that saves, and what each "
     "layer let through."),
    ("Curve", "Every chunk by its distance. Click a point to read the chunk and why it was kept "
     "or dropped."),
    ("Layers", "The switches and sliders on the left act at once, without another search. "
     "**Reset** goes back to the profile."),
    ("Answer", "What an LLM, or quoted sentences, make of the filtered and of the unfiltered "
     "chunks. **Present** (`P`) shows all of it to a room."),
)  # fmt: skip


def draw() -> None:
    """The button that opens the drawer. Who comes by a link to a question came for its result."""
    first = False
    if state.asked() is None and not st.session_state.pending:
        first = bool(_first_visit(key="first-visit", on_first_change=_nothing).first)
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
        _drawer()


def _nothing() -> None:
    """The run that a trigger starts is all that is wanted of it."""


@st.dialog("Help", position="right")
def _drawer() -> None:
    st.markdown("**Five stops**")
    st.markdown("\n".join(f"{n}. **{name}.** {said}" for n, (name, said) in enumerate(STOPS, 1)))
    st.markdown("**Words**")
    st.markdown("\n".join(f"- **{word}**: {meaning}" for word, meaning in TERMS.items()))
