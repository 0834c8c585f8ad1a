"""The question mark beside a control whose label is not shown."""

from __future__ import annotations

import streamlit as st


def beside(text: str) -> None:
    """Explain the control before it, as a label's own help would: with a hidden label, Streamlit
    hides the help too."""
    st.markdown("", help=text, width="content")
