"""The filter of the page: which chunks the table lists, and which ones other parts act on."""

from __future__ import annotations

import streamlit as st

from ragfilter.rules.overview import WORDS, Listing
from ragfilter.text import numbers
from ragfilter.ui.kit.rule_editor import desk
from ragfilter.ui.kit.rule_editor.desk import SOURCES, STATES, TEXT, TYPES, Desk
from ragfilter.ui.look import elements

MAX_LISTED = 500


def draw(work: Desk, rows: Listing | None = None) -> None:
    """Draw the filter. Without `rows`, also say how many chunks it admits."""
    listing = desk.listing(work) if rows is None else rows
    with st.container(
        key="rules-filter", horizontal=True, vertical_alignment="bottom", gap="small"
    ):
        st.text_input(
            "Filter",
            key=TEXT,
            persist_state="session",
            icon=":material/search:",
            placeholder="Title, id, source, type or rule",
            width="stretch",
        )
        _choice("State", STATES, WORDS)
        more = bool(st.session_state.get(TYPES) or st.session_state.get(SOURCES))
        with st.popover("More ●" if more else "More", help="Filter by type and source."):
            _choice("Type", TYPES, listing.types)
            _choice("Source", SOURCES, listing.sources)
    if rows is None:
        count = numbers.count(len(desk.selected(work)))
        elements.aside(f"{count} of {numbers.chunks(len(listing.rows))}")


def _choice(label: str, key: str, options: tuple[str, ...]) -> None:
    # Every run sends all options to the browser.
    many = len(options) > MAX_LISTED
    st.multiselect(
        label,
        () if many else options,
        key=key,
        persist_state="session",
        placeholder="all",
        disabled=many,
        width=150,
    )
