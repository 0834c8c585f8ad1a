"""The Suggest part: rules for families of chunks, an LLM's drafts, and the templates for them."""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.rules import categories, drafts, families
from ragfilter.ui.rules.desk import Desk

WAYS = FAMILIES, LLM, TEMPLATES = ("Families", "LLM drafts", "Templates")


def draw(work: Desk) -> None:
    """The chosen way."""
    way = st.segmented_control(
        "Way",
        WAYS,
        key="suggest-way",
        default=FAMILIES,
        required=True,
        persist_state="session",
        label_visibility="collapsed",
    )
    if way == LLM:
        drafts.draw(work)
    elif way == TEMPLATES:
        categories.draw(work)
    else:
        families.draw(work)
