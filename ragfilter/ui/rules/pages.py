"""One page at a time of what is too long to be drawn at once."""

from __future__ import annotations

import streamlit as st


def choose(key: str, count: int, size: int) -> slice:
    """The page that is chosen, of `count` things in pages of `size`."""
    pages = max(1, -(-count // size))
    if st.session_state.get(key, 1) > pages:
        st.session_state[key] = pages
    page = 1 if pages == 1 else st.pagination(pages, key=key, persist_state="session")
    return slice((page - 1) * size, page * size)
