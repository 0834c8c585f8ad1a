"""The table of all chunks with their rules, and the editor beside it.

Only one page of rows goes to the browser; filter, order and pages are made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.evaluate.rule_matrix import RuleRow
from ragfilter.report import short_title
from ragfilter.rules.overview import STATES, Listing, Row, brief
from ragfilter.ui.look import html, numbers, theme
from ragfilter.ui.main import grid
from ragfilter.ui.rules import desk, matrix, open_chunk
from ragfilter.ui.rules.desk import OPEN, PAGE, SOURCES, TEXT, TYPES, Desk

HEIGHT = 640
TITLE_WIDTH = 31
"""What the column shows of a title in capitals."""
WORDS = (*STATES, "draft", "changed")
SIGNS = {
    "invalid": ("✕", theme.LAYERS["query_must"]),
    "warning": ("!", theme.OUTCOMES["fallback"]),
    "none": ("○", theme.LAYERS["context"]),
    "valid": ("●", theme.OUTCOMES["kept"]),
    "draft": ("✎", theme.OUTCOMES["pinned"]),
    "changed": ("↑", theme.OUTCOMES["expanded"]),
}


def draw(work: Desk) -> None:
    """Table and editor."""
    figures = matrix.figures(work)
    rows = desk.listing(work, {rule: row.delta_f1 or 0.0 for rule, row in figures.items()})
    left, right = st.columns((1.2, 1), gap="medium")
    with left:
        anew = _filters(rows)
        ids = desk.ordered(work, rows, anew=anew)
        _table(rows, ids, figures)
    with right:
        open_chunk.draw(work, rows, ids)


def _filters(rows: Listing) -> bool:
    """The filter; whether the rows are to be put into order anew."""
    with st.container(
        key="rules-filter", horizontal=True, vertical_alignment="bottom", gap="small"
    ):
        st.text_input(
            "Filter",
            key=TEXT,
            persist_state="session",
            icon=":material/search:",
            placeholder="Title, id, source or term",
            help="Shows the chunks that contain all of these words in title, id, type, source or "
            "rule.",
            width=230,
        )
        for label, key, options in (
            ("Type", TYPES, rows.types),
            ("Source", SOURCES, rows.sources),
            ("State", desk.STATES, WORDS),
        ):
            st.multiselect(
                label,
                options,
                key=key,
                persist_state="session",
                placeholder="all",
                help=HELP[label],
                width=150,
            )
        return st.button(
            "Sort again",
            key="rules-sort",
            help="The order stays while you save, so that Next goes on where you are. This sorts "
            "again: what needs attention most comes first.",
        )


HELP = {
    "Type": "Chunks of these types.",
    "Source": "Chunks from these files.",
    "State": "invalid: cannot work. warning: the linter doubts it. none: no rule. valid: nothing "
    "is known against it. draft: an edit that is not saved. changed: edited since the last export.",
}


def _table(rows: Listing, ids: Sequence[str], figures: Mapping[str, RuleRow]) -> None:
    pages = max(1, -(-len(ids) // PAGE))
    page = min(int(st.session_state.get(desk.PAGE_AT, 0)), pages - 1)
    shown = ids[page * PAGE : (page + 1) * PAGE]
    _pager(page, pages, len(ids), len(rows.rows))
    if not shown:
        html.draw(
            '<p class="rf-empty"><b>No chunk fits the filter.</b> Use fewer words or states.</p>'
        )
        return
    by_id = rows.by_id
    found = [by_id[i] for i in shown if i in by_id]
    with st.container(key="table"):
        grid.draw(
            _frame(found, figures),
            [row.id for row in found],
            name="rules",
            height=HEIGHT,
            row_height=32,
            columns=_columns(),
            chosen=st.session_state.get(OPEN),
            pick=desk.open_,
        )


def _pager(page: int, pages: int, found: int, total: int) -> None:
    with st.container(key="rules-pager", horizontal=True, vertical_alignment="center", gap="small"):
        html.draw(
            f'<p class="rf-aside">{numbers.count(found)} of {numbers.chunks(total)}, page '
            f"{page + 1:,} of {pages:,}</p>",
            width="content",
        )
        for label, key, to, off in (
            ("Previous page", "rules-page-back", page - 1, page == 0),
            ("Next page", "rules-page-on", page + 1, page >= pages - 1),
        ):
            st.button(
                label,
                key=key,
                type="tertiary",
                on_click=desk.turn,
                args=(to,),
                disabled=off,
                help=f"Shows {PAGE} rows a page.",
            )


def _frame(rows: Sequence[Row], figures: Mapping[str, RuleRow]) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {
        "state": [[f"{SIGNS[w][0]} {w}" for w in row.words.split(", ")] for row in rows],
        "title": [short_title(row.chunk.name, TITLE_WIDTH) for row in rows],
        "rule": [brief(row.chunk.rule) for row in rows],
    }
    if figures:
        known = [figures.get(row.chunk.rule or "") for row in rows]
        columns |= {
            "blocks": [None if row is None else row.blocks for row in known],
            "conflicts": [None if row is None else len(row.conflicts) for row in known],
            "ΔF1 without": [None if row is None else row.delta_f1 for row in known],
        }
    columns |= {
        "type": [row.chunk.type for row in rows],
        "source": [row.chunk.source for row in rows],
        "id": [row.id for row in rows],
    }
    return pd.DataFrame(columns)


def _columns() -> dict[str, Any]:
    column = st.column_config
    dark = st.context.theme.type == "dark"
    chips = {f"{sign} {word}": theme.tint(mark, dark) for word, (sign, mark) in SIGNS.items()}
    return {
        "state": column.MultiselectColumn(
            "state", width=110, options=list(chips), color=list(chips.values()), help=HELP["State"]
        ),
        "title": column.TextColumn(
            "title", width=250, help="Long titles are shortened before their end."
        ),
        "rule": column.TextColumn(
            "rule", width=260, help="The first term of each part, and how many others it has."
        ),
        "blocks": column.NumberColumn("blocks", width=60, help=matrix.HELP["blocks"]),
        "conflicts": column.NumberColumn("conflicts", width=70, help=matrix.HELP["conflicts"]),
        "ΔF1 without": column.NumberColumn(
            "ΔF1 without", width=85, format="%+.4f", help=matrix.HELP["ΔF1 without"]
        ),
        "type": column.TextColumn("type", width=68),
        "source": column.TextColumn("source", width=110),
        "id": column.TextColumn("id", width=150),
    }
