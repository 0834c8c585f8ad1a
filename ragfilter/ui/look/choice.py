"""The choice between a few words whose label is hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from ragfilter.ui.look import hint


def draw(
    label: str,
    options: Iterable[str],
    about: str = "",
    *,
    key: str,
    default: str,
    on_change: Callable[[], None] | None = None,
) -> str:
    """Draw a choice that is kept as long as the session, and `about` at a question mark beside it.
    Returns what is chosen."""
    chosen = st.segmented_control(
        label, list(options), key=key, default=default, required=True, persist_state="session",
        label_visibility="collapsed", on_change=on_change,
    )  # fmt: skip
    if about:
        hint.beside(about)
    return chosen
