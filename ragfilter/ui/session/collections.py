"""The collections that can be asked, as the session knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import streamlit as st

from ragfilter.text import numbers
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources

if TYPE_CHECKING:
    from ragfilter.stores.chroma.store import CollectionInfo

SPACES = {"l2": "l2", "cosine": "cosine", "ip": "inner product"}


def known(resources: Resources) -> dict[str, CollectionInfo]:
    """The collections by name, as of the start of the session or the last `forget`."""
    found = st.session_state.get("collections")
    if found is None:
        found = {info.name: info for info in resources.bench.collections()}
        st.session_state["collections"] = found
    chosen = st.session_state.collection
    if chosen not in found:
        if chosen:
            state.ignore(f"There is no collection {chosen!r}.")
        st.session_state.collection = "demo" if "demo" in found else next(iter(found), "")
    return cast("dict[str, CollectionInfo]", found)


def forget() -> None:
    """Read the collections again on the next run, because one was changed."""
    st.session_state.pop("collections", None)


def label(info: CollectionInfo) -> str:
    """``demo · 431 chunks · l2``."""
    note = "" if info.complete else " · incomplete"
    return f"{info.name} · {numbers.chunks(info.count)} · {SPACES[info.space]}{note}"
