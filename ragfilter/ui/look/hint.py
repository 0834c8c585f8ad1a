"""The question mark next to a control whose label is hidden."""

from __future__ import annotations

import streamlit as st


def beside(text: str) -> None:
    """Explain the control before it. With a hidden label, Streamlit hides the label's help too."""
    st.markdown("", help=text, width="content")
