"""The table of all chunks with their rules, and the editor next to it.

Only one page of rows is sent to the browser; filtering, sorting and pagination happen on the
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.evaluate.rule_matrix import Matrix
from ragfilter.rules.overview import WORDS, Listing, ListingRow, brief
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import desk, labelled, signs
from ragfilter.ui.kit.rule_editor.desk import OPEN, PAGE, SOURCES, TEXT, TYPES, Desk
from ragfilter.ui.look import elements, theme
from ragfilter.ui.rules import matrix, open_chunk, pages

MEASURE = "rules-measuring"
HEIGHT, ROW = 640, 32
MOST_LISTED = 500
ONE_STATE, TWO_STATES = 92, 162
WIDTHS = {
    "conflicts": 66, "ΔF1 without": 80, "blocks": 60, "queries": 66, "passes": 60,
    "overlap": 66, "precision": 72, "Δrecall without": 104, "fires": 80,
}  # fmt: skip
"""Of the columns of the matrix, in pixels."""
STATE = (
    f"{signs.MEANT} The linter sees rule and title here; the editor and Bulk show it the text too. "
    f"{signs.EDITED}"
)
TITLE_WIDTH = 28
"""Characters of a title in capitals that fit into the column."""


def draw(work: Desk) -> None:
    """Draw the table and the editor."""
    measured = _measure(work)
    made = matrix.last(work)
    rows = desk.listing(work, {} if made is None else made.harm())
    left, right = st.columns((1.4, 1), gap="medium")
    with left:
        _filters(rows)
        ids = desk.ordered(work, rows, anew=measured)
        _table(rows, ids, made)
    with right:
        open_chunk.draw(work, rows, ids)
    if st.session_state.get(MEASURE):
        labelled.wait(work)


def _measure(work: Desk) -> bool:
    """Measure the rules if that was requested. Returns whether it was done in this run."""
    if not st.session_state.get(MEASURE):
        return False
    st.session_state[MEASURE] = labelled.told(work) and matrix.make(work) is None
    return not st.session_state[MEASURE]


def _filters(rows: Listing) -> None:
    with st.container(
        key="rules-filter", horizontal=True, vertical_alignment="bottom", gap="small"
    ):
        st.text_input(
            "Filter",
            key=TEXT,
            persist_state="session",
            icon=":material/search:",
            placeholder="Words",
            help="Shows the chunks that contain all of these words in title, id, type, source or "
            "rule.",
            width="stretch",
        )
        for label, key, options, about in (
            ("Type", TYPES, rows.types, "Chunks of these types."),
            ("Source", SOURCES, rows.sources, "Chunks from these files."),
            ("State", desk.STATES, WORDS, STATE),
        ):
            # Every run sends all options to the browser.
            many = len(options) > MOST_LISTED
            st.multiselect(
                label,
                () if many else options,
                key=key,
                persist_state="session",
                placeholder="all",
                disabled=many,
                help=f"{len(options):,} are too many to list. Type a part of the name under Filter."
                if many
                else about,
                width=126,
            )


def _table(rows: Listing, ids: Sequence[str], made: Matrix | None) -> None:
    with st.container(key="rules-pager", horizontal=True, vertical_alignment="center", gap="small"):
        shown = ids[pages.choose(desk.PAGE_AT, len(ids), PAGE)]
        elements.aside(
            f"{numbers.count(len(ids))} of {numbers.chunks(len(rows.rows))}", width="content"
        )
        st.button(
            "Measure",
            key="rules-measure",
            type="tertiary",
            on_click=lambda: st.session_state.update({MEASURE: True}),
            help="Shows the effect of each rule on the labelled questions, as under Matrix, with "
            "harmful rules first.",
        )
        st.button(
            "Sort again",
            key="rules-sort",
            type="tertiary",
            on_click=st.session_state.pop,
            args=(desk.ORDER, None),
            help="The order stays fixed while you edit. Click to re-sort by urgency.",
        )
    if not shown:
        elements.empty("No chunk matches the filter.", "Use fewer words or states.")
        return
    by_id = rows.by_id
    found = [by_id[i] for i in shown if i in by_id]
    with st.container(key="table"):
        grid.draw(
            _frame(found, made),
            [row.id for row in found],
            name="rules",
            height=min(HEIGHT, ROW * (len(found) + 1) + 6),
            row_height=ROW,
            columns=_columns(TWO_STATES if any(len(row.words) > 1 for row in found) else ONE_STATE),
            chosen=st.session_state.get(OPEN),
            pick=desk.open_,
        )


def _frame(rows: Sequence[ListingRow], made: Matrix | None) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {
        "state": [[signs.signed(word) for word in row.words] for row in rows],
        "title": [short_title(row.chunk.name, TITLE_WIDTH) for row in rows],
    }
    if made is not None:
        of_rule = {row.rule: row for row in made.rules}
        crowding = {row.chunk_id: row.kept for row in made.crowding}
        known = [of_rule.get(row.chunk.rule or "") for row in rows]
        columns |= {
            **matrix.figures(known, matrix.HARM),
            "kept wrongly": [crowding.get(row.id) for row in rows],
            **matrix.figures(known, ["blocks"]),
        }
    if any(row.chunk.rule for row in rows):
        # A page of chunks without one has the room for what tells them apart.
        columns["rule"] = [brief(row.chunk.rule) for row in rows]
    columns |= {
        "source": [row.chunk.source for row in rows],
        "type": [row.chunk.type for row in rows],
        "id": [row.id for row in rows],
    }
    if made is not None:
        # Less important columns are further right; those above stay where they are.
        columns |= matrix.figures(known)
    return pd.DataFrame(columns)


def _columns(state: int) -> dict[str, Any]:
    chips = signs.chips(dark=theme.is_dark())
    text = st.column_config.TextColumn
    return {
        "state": st.column_config.MultiselectColumn(
            width=state, options=list(chips), color=list(chips.values()), help=STATE
        ),
        "title": text(width=207, help="Long titles are shortened before their end."),
        "rule": text(width=146, help="The first term of each part, and how many others it has."),
        "kept wrongly": st.column_config.NumberColumn(
            width=88,
            help="For a chunk without a rule: labelled questions that keep it although it is not "
            "labelled relevant.",
        ),
        "source": text(width=138),
        "type": text(width=60),
        "id": text(width=150),
        **matrix.columns(WIDTHS),
    }
