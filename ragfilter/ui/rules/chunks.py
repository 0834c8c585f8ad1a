"""The table of all chunks with their rules, and the editor of the open chunk next to it.

Only one page of rows is sent to the browser; filtering, sorting and pagination happen on the
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.evaluate.rule_matrix import Matrix
from ragfilter.rules.overview import Listing, ListingRow, brief
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import desk, editor, rule_effect
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import html, theme
from ragfilter.ui.rules import bulk_change, matrix_table
from ragfilter.ui.session import state

PAGE_AT = "rules-page"
PAGE = 200
"""Rows sent to the browser at a time."""
HEIGHT, ROW, TEXT_HEIGHT = 640, 32, 120
ONE_STATE, TWO_STATES = 84, 162
WIDTHS = {
    "conflicts": 66, "ΔF1 without": 80, "blocks": 60, "queries": 66, "passes": 60,
    "overlap": 66, "precision": 72, "Δrecall without": 104, "fires": 80,
}  # fmt: skip
"""Of the columns of the matrix, in pixels."""
TITLE_WIDTH = 24
"""Characters of a title in capitals that fit into the column."""


def draw(work: Desk) -> None:
    """Draw the table and the editor."""
    session = state.session().rules
    if measured := session.measuring:
        session.measuring = rule_effect.available(work) and matrix_table.make(work) is None
        measured = not session.measuring
    figures = matrix_table.last(work)
    rows = desk.listing(work, {} if figures is None else figures.harm())
    left, right = st.columns((1, 1.3), gap="medium")
    with left:
        desk.draw_filter(work, rows)
        ids = desk.ordered(work, rows, anew=measured)
        _table(rows, ids, figures)
    with right:
        _open_chunk(work, rows, ids)
    if session.measuring:
        rule_effect.wait(work)


def _table(rows: Listing, ids: Sequence[str], figures: Matrix | None) -> None:
    with st.container(key="rules-pager", horizontal=True, vertical_alignment="center", gap="small"):
        page = ids[bulk_change.page(PAGE_AT, len(ids), PAGE)]
        html.aside(
            f"{numbers.count(len(ids))} of {numbers.chunks(len(rows.rows))}", width="content"
        )
        st.button(
            "Measure",
            key="rules-measure",
            type="tertiary",
            on_click=lambda: setattr(state.session().rules, "measuring", True),
            help="Adds the columns of the matrix, and puts harmful rules first.",
        )
        st.button(
            "Sort again",
            key="rules-sort",
            type="tertiary",
            on_click=lambda: setattr(state.session().rules, "order", None),
            help="The order stays fixed while you edit. Click to re-sort by urgency.",
        )
    if not page:
        html.empty("No chunk matches the filter.", "Use fewer words or states.")
        return
    shown = [rows.by_id[i] for i in page if i in rows.by_id]
    with st.container(key="table"):
        grid.draw(
            _frame(shown, figures),
            [row.id for row in shown],
            name="rules",
            height=min(HEIGHT, ROW * (len(shown) + 1) + 6),
            row_height=ROW,
            columns=_columns(TWO_STATES if any(len(row.words) > 1 for row in shown) else ONE_STATE),
            chosen=state.session().rules.chunk,
            pick=desk.open_,
        )


def _frame(rows: Sequence[ListingRow], figures: Matrix | None) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {
        "state": [[desk.signed(word) for word in row.words] for row in rows],
        "title": telling_titles([row.chunk.name for row in rows], TITLE_WIDTH),
    }
    of_rule = {} if figures is None else {row.rule: row for row in figures.rules}
    measured = [of_rule.get(row.chunk.rule or "") for row in rows]
    if figures is not None:
        crowding = {row.chunk_id: row.kept for row in figures.crowding}
        columns |= {
            **matrix_table.figures(measured, matrix_table.HARM),
            "kept wrongly": [crowding.get(row.id) for row in rows],
            **matrix_table.figures(measured, ["blocks"]),
        }
    if any(row.chunk.rule for row in rows):
        # A page of chunks without one has the room for what tells them apart.
        columns["rule"] = [brief(row.chunk.rule) for row in rows]
    columns |= {
        "source": [row.chunk.source for row in rows],
        "type": [row.chunk.type for row in rows],
        "id": [row.id for row in rows],
    }
    # Less important columns are further right; those above stay where they are.
    return pd.DataFrame(columns | ({} if figures is None else matrix_table.figures(measured)))


def _columns(state_width: int) -> dict[str, Any]:
    chips = desk.chips(dark=theme.is_dark())
    text = st.column_config.TextColumn
    return {
        "state": st.column_config.MultiselectColumn(
            width=state_width,
            options=list(chips),
            color=list(chips.values()),
            help=f"{desk.STATES_HELP} Only the editor and Findings check rules against the text.",
        ),
        "title": text(width=170),
        "rule": text(width=192, help="The first term of each part, and how many others it has."),
        "kept wrongly": st.column_config.NumberColumn(
            width=88, help="Labelled questions that keep the chunk, which has no rule, wrongly."
        ),
        "source": text(width=136),
        "type": text(width=56),
        "id": text(width=150),
        **matrix_table.columns(WIDTHS),
    }


def _open_chunk(work: Desk, rows: Listing, ids: Sequence[str]) -> None:
    """Draw the editor of the open chunk, and the buttons for the chunks before and after it."""
    chunk = work.chunk(state.session().rules.chunk)
    place = ids.index(chunk.id) if chunk is not None and chunk.id in ids else -1
    with st.container(key="rules-panel", border=True, gap="small"):
        _steps(place, ids)
        if chunk is None:
            html.empty("No chunk is open.", "Click a row, or press Next to begin with the first.")
            return
        facts = (chunk.id, chunk.type, chunk.source, f"page {chunk.page}" if chunk.page else "")
        listed = "".join(f"<span>{html.text(fact)}</span>" for fact in facts if fact)
        html.draw(
            f'<div class="rf-chunk"><h3>{html.text(chunk.name)}</h3>'
            f'<p class="rf-facts">{listed}</p></div>'
        )
        with st.container(key="chunk-text", height=TEXT_HEIGHT):
            st.text(chunk.text or "This chunk has no text.")
        shared = [rows.shared[chunk.id]] if chunk.id in rows.shared else []
        effect, guard = partial(rule_effect.draw, work, chunk), partial(rule_effect.guard, work)
        here = editor.Editing(
            chunk, work.collection, work.user, work.resources, effect, guard, shared,
            turns=False,
        )  # fmt: skip
        left, right = st.columns((1.15, 1), gap="medium")
        beside = right.container(key="rule-effect", gap="small")
        with left:
            editor.draw(here, beside)
        rule_effect.wait(work)


def _steps(place: int, ids: Sequence[str]) -> None:
    with st.container(key="rules-steps", horizontal=True, vertical_alignment="center", gap="small"):
        for label, key, to, shortcut in (
            ("Previous", "rules-back", place - 1, "Alt+Up"),
            ("Next", "rules-next", place + 1, "Alt+Down"),
        ):
            st.button(
                label,
                key=key,
                on_click=_go,
                args=(to, ids[to] if 0 <= to < len(ids) else ""),
                disabled=not 0 <= to < len(ids),
                shortcut=shortcut,
                help=f"Opens the {label.lower()} row. A draft stays where it is.",
            )
        if place >= 0:
            html.aside(f"{place + 1:,} of {len(ids):,}", width="content")


def _go(place: int, chunk_id: str) -> None:
    """Open a chunk, and show the page of the table with its row, counted from 0."""
    desk.open_(chunk_id)
    st.session_state[PAGE_AT] = place // PAGE + 1
