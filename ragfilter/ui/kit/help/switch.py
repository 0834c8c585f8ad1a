"""Enters and leaves Present mode."""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.session import state


def draw() -> None:
    """Draw the button, with its shortcut key."""
    on = bool(state.session().present)
    with st.container(key="present-switch", width="content"):
        st.button(
            "Leave" if on else "Present",
            key="present-button",
            shortcut="P",
            icon=":material/close:" if on else ":material/present_to_all:",
            type="tertiary",
            on_click=_flip,
            help="Go back to the tables and settings."
            if on
            else "Present this result to an audience: large type, plain words, no settings.",
        )


def _flip() -> None:
    state.session().present = not state.session().present
    state.session().scene = state.session().scene_before = None
