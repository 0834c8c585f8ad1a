"""A table of chunks: a click anywhere in a row opens its chunk, whose row stays selected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from zlib import crc32

import pandas as pd
import streamlit as st

from ragfilter.ui.session import state


def draw(
    table: pd.DataFrame, ids: Sequence[str], *, name: str, height: int, row_height: int,
    columns: dict[str, Any], chosen: str | None = None, pick: Callable[[str], None] | None = None,
) -> None:  # fmt: skip
    """Draw `table`, whose rows are the chunks `ids`. With `pick`, a click hands it the chunk, and
    `chosen` is the one that is open; else the session's chunk is."""
    # A new key only where other rows stand in the table, so that a slider moves nothing.
    key = f"{name}-{crc32('|'.join(ids).encode())}"
    chosen = chosen if pick else st.session_state.chunk
    rows = [ids.index(chosen)] if chosen in ids else []
    wanted = {"rows": rows, "columns": [], "cells": []}
    if dict(st.session_state.get(key, {}).get("selection", {})) != wanted:
        st.session_state[key] = {"selection": wanted}
    st.dataframe(
        table,
        key=key,
        hide_index=True,
        height=height,
        row_height=row_height,
        on_select=partial(_open_row, key, ids, pick or state.open_chunk),
        selection_mode=("single-row", "single-cell"),
        column_config=columns,
        placeholder="–",
    )


def _open_row(key: str, ids: Sequence[str], pick: Callable[[str], None]) -> None:
    picked = st.session_state[key]["selection"]
    # A cell says more: where one is clicked, the row that was selected before may still be named.
    rows = [row for row, _ in picked["cells"]] or picked["rows"]
    if rows and rows[0] < len(ids):
        pick(ids[rows[0]])


def open_clicked(key: str, ids: Sequence[str]) -> None:
    """Open the chunk whose button was clicked. Unlike a selection, it does not wait 150 ms."""
    row = st.session_state[key]["row"]
    if row < len(ids):
        state.open_chunk(ids[row])
