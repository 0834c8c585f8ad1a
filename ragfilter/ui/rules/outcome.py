"""The outcome of the last action on many rules, shown until the next action."""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.look.prose import message

SAID = "rules-said"


def put(words: str, *, good: bool) -> None:
    """Store the outcome to be shown."""
    st.session_state[SAID] = (words, good)


def forget() -> None:
    """Clear the outcome, because another action begins."""
    st.session_state.pop(SAID, None)


def draw() -> None:
    """Draw the outcome, if there is one."""
    found: tuple[str, bool] | None = st.session_state.get(SAID)
    if found is not None:
        words, good = found
        (st.success if good else st.error)(message(words))
