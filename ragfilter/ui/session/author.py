"""The name that labels, votes, runs and rule edits of this session are recorded with."""

from __future__ import annotations

import streamlit as st

from ragfilter.text.characters import whole
from ragfilter.ui.session.resources import open_resources

MOST = 100
"""Characters of a name."""


def author() -> str:
    """The name given in this session, otherwise that of the deployment."""
    given: str = st.session_state.get("author", "")
    return given or open_resources().deployment.user


def sign(name: str) -> None:
    """Use this name from now on; a blank one stands for that of the deployment."""
    st.session_state.author = whole(name).strip()[:MOST].strip()
