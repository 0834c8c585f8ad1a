"""Tables whose rows can be clicked, mostly of chunks: a click in a row opens its chunk, and the row stays selected."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any
from zlib import crc32

import pandas as pd
import streamlit as st

from ragfilter.text.numbers import signed
from ragfilter.text.titles import telling_titles
from ragfilter.ui.look import elements
from ragfilter.ui.session import state

Columns = dict[str, Any]
ROW_PX = 32
TABLE: dict[str, Any] = {"hide_index": True, "row_height": ROW_PX, "placeholder": "–"}
CLICKED = TABLE | {"selection_mode": ("single-row", "single-cell")}
"""A table whose rows can be clicked."""
EDGE_PX, SPACE_PX, LETTER_PX, CAPITAL_PX = 17, 3.3, 6.6, 8.2
"""Widths in a cell: both edges together, a space, a small letter and a capital."""
GAINS = {"gain": 3, "ΔF1": 3, "adds to F1": 4, "adds to recall": 4}
"""Columns of differences, and their digits."""
PROSE_PX = 230
"""Columns of text that are at least this wide may have longer sentences."""


def fitting_titles(titles: Sequence[str], width: int) -> list[str]:
    """`titles` shortened for a column of `width` pixels, but still distinct."""
    room = width - EDGE_PX
    letters, capitals = (telling_titles(titles, int(room / px)) for px in (LETTER_PX, CAPITAL_PX))
    return [a if _fitting(a, width) == a else b for a, b in zip(letters, capitals, strict=True)]


def fitting_questions(questions: Iterable[str], width: int) -> list[str]:
    """`questions` shortened at the end for a column of `width` pixels; those that would look the same, elsewhere."""
    texts, room = [*questions], round(1.06 * width)
    short = [_fitting(text, room) for text in texts]
    telling = telling_titles(texts, int((room - EDGE_PX) / LETTER_PX)) if len({*short}) < len({*texts}) else short
    counts = Counter(short)
    return [b if counts[a] > 1 else a for a, b in zip(short, telling, strict=True)]


@lru_cache(maxsize=4096)
def _fitting(text: str, width: int) -> str:
    """`text` with an ellipsis where a column of `width` pixels would cut it off unmarked."""
    px = [*accumulate(SPACE_PX if c == " " else CAPITAL_PX if c.isupper() else LETTER_PX for c in text)]
    room = width - EDGE_PX
    return text if not px or px[-1] <= room else f"{text[: bisect_right(px, room - CAPITAL_PX)].rstrip()}…"


def _marked(table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """`table` with an ellipsis where a column would cut off a sentence unmarked."""
    for name, config in columns.items():
        width = config.get("width") if isinstance(config, dict) and name in table else None
        if isinstance(width, int) and width >= PROSE_PX:
            # The letters of a sentence are narrower than the widest titles' letters.
            room = round(1.06 * width)
            table[name] = [_fitting(text, room) if isinstance(text, str) else text for text in table[name]]
    return table


MAX_STYLED = 50_000
"""Formatting as many cells takes half a second."""


def signed_figures(table: pd.DataFrame) -> Any:
    """`table` with the signs of gains; a column's own format would write another minus."""
    gains = {name: partial(signed, digits=n) for name, n in GAINS.items() if name in table}
    if not gains or table.size > MAX_STYLED:
        return table
    return table.style.format(gains, na_rep="–", precision=0)  # type: ignore[arg-type]


def chip_column(width: int, chips: Mapping[str, str], about: str | None = None) -> Any:
    """A column of lists of words, each tinted as `chips` says."""
    return st.column_config.MultiselectColumn(width=width, options=list(chips), color=list(chips.values()), help=about)


def draw(
    table: pd.DataFrame,
    ids: Sequence[str],
    *,
    name: str,
    height: int,
    columns: Columns,
    chosen: str | None = None,
    pick: Callable[[str], None] | None = None,
) -> None:
    """Draw `table`, whose rows are the chunks `ids`. A click passes the chunk to `pick`, and
    `chosen` is the open one. Without `pick`, a click opens the chunk in the session."""
    key = key_of(name, ids)
    chosen = chosen if pick else state.session().chunk
    selected = dict(st.session_state.get(key, {}).get("selection", {}))
    rows = [ids.index(chosen)] if chosen in ids else []
    # Keep the cell, so that arrow keys continue from it.
    cells = [cell for cell in selected.get("cells", ()) if cell[0] in rows]
    selection = {"rows": rows, "columns": [], "cells": cells}
    if selected != selection:
        st.session_state[key] = {"selection": selection}
    on_select = partial(_open_row, key, ids, chosen, pick or state.open_chunk)
    shown = signed_figures(_marked(table, columns))
    st.dataframe(shown, key=key, height=height, column_config=columns, on_select=on_select, **CLICKED)


def draw_previous_next(ids: Sequence[str], chosen: str | None, pick: Callable[[str], None], name: str) -> None:
    """Draw buttons for the rows before and after the chosen one. `pick` gets the new id."""
    at = ids.index(chosen) if chosen in ids else -1
    for label, to, arrow in (("Previous", at - 1, "Up"), ("Next", at + 1, "Down")):
        exists = 0 <= to < len(ids)
        go = partial(pick, ids[to] if exists else "")
        look = {"icon": f"keyboard_arrow_{arrow.lower()}", "shortcut": f"Alt+{arrow}"}
        about = f"In the order of the table (Alt+{arrow})."
        elements.button(label, f"{name}-{label.lower()}", go, disabled=not exists, about=about, **look)


def choose_page(key: str, count: int, size: int) -> slice:
    """Draw a page selector if `count` items need several pages of `size`. Returns the slice of the chosen page."""
    pages = max(1, -(-count // size))
    if st.session_state.get(key, 1) > pages:
        st.session_state[key] = pages
    number = 1 if pages == 1 else st.pagination(pages, key=key, persist_state="session")
    return slice((number - 1) * size, number * size)


def draw_clickable(
    table: pd.DataFrame, ids: Iterable[str], *, name: str, columns: Columns, height: int = 360, box: str = "table"
) -> int | None:
    """Draw `table`, whose rows have the keys `ids`, at most `height` pixels high. Returns the
    clicked row, whether by a cell or by its marker. `box` is a key for a page's second table."""
    with st.container(key=box):
        height = min(height, ROW_PX * (len(table) + 1) + 7)
        key = key_of(name, ids)
        shown = signed_figures(_marked(table, columns))
        event = st.dataframe(shown, key=key, height=height, column_config=columns, on_select="rerun", **CLICKED)
    selection = event["selection"]
    chosen = [row for row, _ in selection["cells"]] or selection["rows"]
    return int(chosen[0]) if chosen and chosen[0] < len(table) else None


def key_of(name: str, ids: Iterable[str]) -> str:
    """A table's key. It changes only with the rows, so that moving a slider moves nothing else."""
    return f"{name}-{crc32('|'.join(ids).encode('utf-8', 'replace'))}"


def _open_row(key: str, ids: Sequence[str], chosen: str | None, pick: Callable[[str], None]) -> None:
    selection = st.session_state[key]["selection"]
    # A click changes either the cell or the row; the other still names the open chunk.
    rows = [*(row for row, _ in selection["cells"]), *selection["rows"]]
    clicked = [ids[row] for row in rows if row < len(ids)]
    # Prefer a chunk other than the open one. Clicking the open one again may reopen its panel.
    if clicked:
        pick(min(clicked, key=lambda chunk_id: chunk_id == chosen))


def open_clicked(button: str, name: str, column: str, ids: Sequence[str]) -> None:
    """Open the chunk whose `button` in `column` was clicked. Unlike a selection, this does not wait
    150 ms. The cell is selected as by any other click, so that arrow keys continue from it."""
    row = st.session_state[button]["row"]
    if row < len(ids):
        state.open_chunk(ids[row])
        selection = {"rows": [row], "columns": [], "cells": [(row, column)]}
        st.session_state[key_of(name, ids)] = {"selection": selection}
        state.session().table_clicks += 1
