"""A table of chunks. A click anywhere in a row opens its chunk, and the row stays selected."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any
from zlib import crc32

import pandas as pd
import streamlit as st

from ragfilter.text.titles import telling_titles
from ragfilter.ui.look import html
from ragfilter.ui.session import state

EDGE_PX, SPACE_PX, LETTER_PX, CAPITAL_PX = 17, 3.3, 6.6, 8.2
"""Widths in a cell: both edges together, a space, a small letter and a capital."""


def fitting_titles(titles: Sequence[str], width: int) -> list[str]:
    """`titles` shortened for a column of `width` pixels, which cuts longer ones off unmarked."""
    letters, capitals = (telling_titles(titles, int((width - EDGE_PX) / px)) for px in (LETTER_PX, CAPITAL_PX))
    return [a if _cut(a, width) == a else b for a, b in zip(letters, capitals, strict=True)]


def _cut(text: Any, width: int) -> Any:
    """A text with an ellipsis where a column of `width` pixels would cut it off unmarked."""
    if not isinstance(text, str) or len(text) * CAPITAL_PX <= width - EDGE_PX:
        return text
    ends = [*accumulate(SPACE_PX if c == " " else CAPITAL_PX if c.isupper() else LETTER_PX for c in text)]
    whole = ends[-1] <= width - EDGE_PX
    return text if whole else text[: bisect(ends, width - EDGE_PX - CAPITAL_PX)].rstrip() + "…"


def _fitting(table: pd.DataFrame, columns: dict[str, Any]) -> pd.DataFrame:
    """The table with texts that fit into the columns whose width is set."""
    # A column of buttons is no mapping; its words are short.
    widths = {name: each.get("width") for name, each in columns.items() if name in table and isinstance(each, dict)}
    return table.assign(**{n: [_cut(each, w) for each in table[n]] for n, w in widths.items() if isinstance(w, int)})


def draw(
    table: pd.DataFrame,
    ids: Sequence[str],
    *,
    name: str,
    height: int,
    row_height: int,
    columns: dict[str, Any],
    chosen: str | None = None,
    pick: Callable[[str], None] | None = None,
) -> None:
    """Draw `table`, whose rows are the chunks `ids`. A click passes the chunk to `pick`, and
    `chosen` is the open one. Without `pick`, a click opens the chunk in the session."""
    key = key_of(name, ids)
    now = dict(st.session_state.get(key, {}).get("selection", {}))
    chosen = chosen if pick else state.session().chunk
    rows = [ids.index(chosen)] if chosen in ids else []
    # Keep the cell, so that arrow keys continue from it.
    cells = [cell for cell in now.get("cells", ()) if cell[0] in rows]
    wanted = {"rows": rows, "columns": [], "cells": cells}
    if now != wanted:
        st.session_state[key] = {"selection": wanted}
    st.dataframe(
        _fitting(table, columns),
        key=key,
        hide_index=True,
        height=height,
        row_height=row_height,
        on_select=partial(_open_row, key, ids, chosen, pick or state.open_chunk),
        selection_mode=("single-row", "single-cell"),
        column_config=columns,
        placeholder="–",
    )


def draw_steps(ids: Sequence[str], chosen: str | None, pick: Callable[[str], None], name: str) -> None:
    """Draw buttons for the rows before and after the chosen one. `pick` gets the new id."""
    here = ids.index(chosen) if chosen in ids else -1
    for label, to, arrow in (("Previous", here - 1, "Up"), ("Next", here + 1, "Down")):
        there = 0 <= to < len(ids)
        html.button(
            label,
            f"{name}-{label.lower()}",
            pick,
            ids[to] if there else "",
            icon=f"keyboard_arrow_{arrow.lower()}",
            disabled=not there,
            shortcut=f"Alt+{arrow}",
            about=f"In the order of the table (Alt+{arrow}).",
        )


def picked(
    table: pd.DataFrame,
    ids: Iterable[str],
    *,
    name: str,
    columns: dict[str, Any],
    height: int = 360,
    box: str = "table",
) -> int | None:
    """Draw `table`, whose rows have the keys `ids`, at most `height` pixels high. Returns the
    clicked row, whether by a cell or by its marker. `box` is a key for a page's second table."""
    with st.container(key=box):
        event = st.dataframe(
            _fitting(table, columns),
            key=key_of(name, ids),
            hide_index=True,
            height=min(height, 32 * (len(table) + 1) + 7),
            row_height=32,
            on_select="rerun",
            selection_mode=("single-row", "single-cell"),
            column_config=columns,
            placeholder="–",
        )
    selection = event["selection"]
    chosen = [row for row, _ in selection["cells"]] or selection["rows"]
    return int(chosen[0]) if chosen and chosen[0] < len(table) else None


def key_of(name: str, ids: Iterable[str]) -> str:
    """A table's key. It changes only with the rows, so that moving a slider moves nothing else."""
    return f"{name}-{crc32('|'.join(ids).encode('utf-8', 'replace'))}"


def _open_row(key: str, ids: Sequence[str], chosen: str | None, pick: Callable[[str], None]) -> None:
    picked = st.session_state[key]["selection"]
    # A click changes either the cell or the row; the other still names the open chunk.
    rows = [*(row for row, _ in picked["cells"]), *picked["rows"]]
    chosen_ids = [ids[row] for row in rows if row < len(ids)]
    # Prefer a chunk other than the open one. Clicking the open one again may reopen its panel.
    if chosen_ids:
        pick(min(chosen_ids, key=lambda chunk: chunk == chosen))


def open_clicked(button: str, name: str, column: str, ids: Sequence[str]) -> None:
    """Open the chunk whose `button` in `column` was clicked. Unlike a selection, this does not wait
    150 ms. The cell is selected as by any other click, so that arrow keys continue from it."""
    row = st.session_state[button]["row"]
    if row < len(ids):
        state.open_chunk(ids[row])
        selection = {"rows": [row], "columns": [], "cells": [(row, column)]}
        st.session_state[key_of(name, ids)] = {"selection": selection}
        state.session().table_clicks += 1
