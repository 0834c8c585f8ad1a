"""Pagination for lists that are too long to draw at once."""

from __future__ import annotations

import streamlit as st


def choose(key: str, count: int, size: int) -> slice:
    """Draw a page selector if there is more than one page. Returns the slice of the chosen page,
    for `count` items in pages of `size`."""
    pages = max(1, -(-count // size))
    if st.session_state.get(key, 1) > pages:
        st.session_state[key] = pages
    page = 1 if pages == 1 else st.pagination(pages, key=key, persist_state="session")
    return slice((page - 1) * size, page * size)
