"""The collections that can be asked, as the session knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import streamlit as st

from ragfilter.errors import StoreError
from ragfilter.text import numbers
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources

if TYPE_CHECKING:
    from ragfilter.stores.chroma.store import CollectionInfo

SPACES = {"l2": "l2", "cosine": "cosine", "ip": "inner product"}


def known(resources: Resources) -> dict[str, CollectionInfo]:
    """The collections by name. They are read again once one of them has changed, whoever changed
    it. While the store cannot be reached, they are those it had last."""
    held = st.session_state.get("collections")
    try:
        mark = resources.bench.stores.mark()
        if held is None or held[0] != mark:
            held = mark, {info.name: info for info in resources.bench.collections()}
            st.session_state["collections"] = held
    except StoreError:
        if held is None:
            raise
    found = held[1]
    chosen = st.session_state.collection
    if chosen not in found:
        if chosen:
            state.ignore(f"There is no collection {chosen!r}.")
        st.session_state.collection = "demo" if "demo" in found else next(iter(found), "")
    return cast("dict[str, CollectionInfo]", found)


def label(info: CollectionInfo) -> str:
    """``demo · 431 chunks · l2``."""
    note = "" if info.complete else " · incomplete"
    return f"{info.name} · {numbers.chunks(info.count)} · {SPACES[info.space]}{note}"
