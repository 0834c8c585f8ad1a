"""What every page begins with: the style sheet."""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.look import theme


def dress() -> None:
    """Put the style sheet on the page, once a run."""
    st.html(theme.stylesheet(dark=st.context.theme.type == "dark"))
