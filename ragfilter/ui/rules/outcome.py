"""What came of the last thing that was done to many rules: said until something else is done."""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.look.prose import message

SAID = "rules-said"


def put(words: str, *, good: bool) -> None:
    """Remember what came of it."""
    st.session_state[SAID] = (words, good)


def forget() -> None:
    """Something else is being done."""
    st.session_state.pop(SAID, None)


def draw() -> None:
    """Say it, where there is something to say."""
    found: tuple[str, bool] | None = st.session_state.get(SAID)
    if found is not None:
        words, good = found
        (st.success if good else st.error)(message(words))
