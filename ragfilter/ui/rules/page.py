"""The Rules page. It draws one part at a time, by default the table of all chunks with the editor of the open one.

Only one page of rows is sent to the browser; filtering, sorting and pagination happen on the server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.evaluate.rule_matrix import Matrix
from ragfilter.rules.overview import WORDS, Listing, ListingRow
from ragfilter.rules.rule import read_rule
from ragfilter.text import numbers
from ragfilter.ui.kit import grid, problems
from ragfilter.ui.kit.rule_editor import editor, rule_effect, saving, visible_collection
from ragfilter.ui.kit.rule_editor.saving import Editing
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements, theme
from ragfilter.ui.rules import findings, listed_rows, many_rules, matrix, tester, undo_history
from ragfilter.ui.session import link, state
from ragfilter.ui.session.page_run import PageRun

ABOUT = (
    "Chunks: find a chunk and edit its rule. Findings: problems in rules, and proposed rules. Bulk: one change to all "
    "filtered chunks. Matrix: what each rule does to labelled questions; Chunks then shows it too. Tester: which "
    "rules pasted questions meet. Files: import and export. History: every change."
)
BOXES = {name: f"rules-{name}" for name in listed_rows.FILTERS}
"""The widgets of the filter, by their parameters in the link."""
PAGE_AT = "rules-page"
PAGE = 200
"""Rows sent to the browser at a time."""
HEIGHT, TEXT_HEIGHT = 640, 120
ONE_STATE, TWO_STATES = 84, 162
TITLE_PX = 170


@problems.show_errors(retry=True)
def draw(page_run: PageRun) -> None:
    """Draw the chosen part for the chosen collection."""
    if not page_run.ready:
        problems.draw_empty(page_run, None)
        return
    rules = state.session().rules
    _open_link()
    visible = visible_collection.current(state.session().collection, page_run.settings, page_run.resources)
    with elements.row("rules-bar"):
        part = elements.choice("Part", PARTS, ABOUT, key=listed_rows.PART, default="Chunks")
        undo_history.draw_undo_redo(visible)
        # Clear the previous part while this one is being drawn.
        fresh, rules.part = rules.part != part, part
        if fresh:
            rules.bulk_outcome = None
        if rules.bulk_outcome is not None:
            elements.draw_action_result(rules.bulk_outcome[0], good=rules.bulk_outcome[1])
    problems.draw_incomplete(page_run.incomplete)
    with (st.empty() if fresh else st).container(key="rules-work"):
        PARTS[part](visible)
    saving.keep_in_browser()
    _update_link(visible, part)


def _open_link() -> None:
    """Open the part, filter and chunk that the address names."""
    session = state.session()
    look, session.opened = session.opened, {}
    if not look:
        return
    if (look.get(link.PART) or "Chunks") in PARTS:
        st.session_state[listed_rows.PART] = look.get(link.PART) or "Chunks"
    session.rules.chunk = look.get(link.CHUNK)
    for name, box in BOXES.items():
        listed = look.get(name, "").split(link.SEPARATOR)
        words = [word for word in listed if word and (name != link.STATES or word in WORDS)]
        st.session_state[box] = look.get(name, "") if name == link.TEXT else words


def _update_link(visible: VisibleCollection, part: str) -> None:
    """Put the open part, filter and chunk into the address, so that a reload restores them."""
    chosen = {name: st.session_state.get(box) or "" for name, box in BOXES.items()}
    more = {k: v if isinstance(v, str) else link.SEPARATOR.join(v) for k, v in chosen.items()}
    chunk = visible.chunk(state.session().rules.chunk)
    # People share addresses, so leave out a chunk that only an operator sees.
    more[link.CHUNK] = chunk.id if chunk is not None and state.user().sees(chunk) else ""
    more[link.PART] = part if part != "Chunks" else ""
    link.update(more={name: value for name, value in more.items() if value})
    link.show_address()


def _chunks(visible: VisibleCollection) -> None:
    rows = listed_rows.listing(visible)
    left, right = st.columns((1, 1.3), gap="medium")
    with left:
        listed_rows.draw_filter(visible, rows)
        ids = listed_rows.row_order(visible, rows)
        _table(rows, ids, matrix.measured(visible))
    with right:
        _open_chunk(visible, rows, ids)


def _table(rows: Listing, ids: Sequence[str], latest: Matrix | None) -> None:
    with elements.row("rules-pager"):
        elements.aside(f"{numbers.count(len(ids))} of {numbers.chunk_count(len(rows.rows))}", width="content")
        page = ids[grid.choose_page(PAGE_AT, len(ids), PAGE)]
    if not page:
        elements.empty("No chunk matches the filter.", "Use fewer words or states.")
        return
    shown = [rows.by_id[i] for i in page if i in rows.by_id]
    table, keys = _frame(shown, latest), [row.id for row in shown]
    columns = _columns(TWO_STATES if any(len(row.words) > 1 for row in shown) else ONE_STATE)
    height, chosen = min(HEIGHT, grid.ROW_PX * (len(shown) + 1) + 6), state.session().rules.chunk
    with st.container(key="table"):
        grid.draw(table, keys, name="rules", height=height, columns=columns, chosen=chosen, pick=listed_rows.open_chunk)


def _frame(rows: Sequence[ListingRow], latest: Matrix | None) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {
        "state": [[theme.rule_state(word) for word in row.words] for row in rows],
        "title": grid.fitting_titles([row.chunk.name for row in rows], TITLE_PX),
    }
    rules = [read_rule(row.chunk.rule) for row in rows]
    of_chunk = {chunk_id: row for row in latest.rules for chunk_id in row.chunk_ids} if latest else {}
    measured = [of_chunk.get(row.id) for row in rows]
    if latest:
        kept = {row.chunk_id: row.kept for row in latest.crowding}
        columns |= matrix.figures(measured, matrix.HARM)
        columns["kept wrongly"] = [None if row.chunk.rule else kept.get(row.id) for row in rows]
    if any(rules):
        # Without rules, the columns that tell chunks apart get the room.
        columns["rule"] = [matrix.rule_cell(rule) for rule in rules]
    columns |= {
        "source": [row.chunk.source for row in rows],
        "type": [row.chunk.type for row in rows],
        "id": [row.id for row in rows],
    }
    # Less important columns come further right; the ones above keep their places.
    return pd.DataFrame(columns | (matrix.figures(measured) if latest else {}))


def _columns(state_width: int) -> dict[str, Any]:
    text, chips = st.column_config.TextColumn, theme.rule_chips(dark=theme.is_dark())
    about = f"{theme.RULE_STATES_HELP} Only the editor and Findings check rules against the text."
    return {
        "state": grid.chip_column(state_width, chips, about),
        "title": text(width=TITLE_PX),
        "rule": text(width=192, help="The first term of each part. An ellipsis stands for its other terms."),
        "source": text(width=136),
        "type": text(width=56),
        "id": text(width="medium"),
        "kept wrongly": st.column_config.NumberColumn(
            width=88, help="Labelled questions that wrongly keep this chunk, which has no rule."
        ),
        **matrix.columns(),
    }


def _open_chunk(visible: VisibleCollection, rows: Listing, ids: Sequence[str]) -> None:
    chunk = visible.chunk(state.session().rules.chunk)
    place = ids.index(chunk.id) + 1 if chunk is not None and chunk.id in ids else 0
    with st.container(key="rules-panel", border=True, gap="small"):
        with elements.row("rules-steps"):
            grid.draw_previous_next(ids, state.session().rules.chunk, partial(_go, ids), "rules")
            if place:
                elements.aside(f"{place:,} of {len(ids):,}", width="content")
        if chunk is None:
            remedy = "Click a row, or press Next to begin with the first." if ids else "No chunk matches the filter."
            elements.empty("No chunk is open.", remedy)
            return
        page = f"page {chunk.page}" if chunk.page else ""
        elements.chunk_head(chunk.name, (chunk.id, chunk.type, chunk.source, page))
        with st.container(key="chunk-text", height=TEXT_HEIGHT):
            elements.draw_chunk_text(chunk.text)
        shared = [rows.shared[chunk.id]] if chunk.id in rows.shared else []
        effect, harm_of = partial(rule_effect.draw, visible, chunk), partial(rule_effect.harm_of_rule, visible)
        editing = Editing(
            chunk, visible.collection, visible.user, visible.resources, effect, harm_of, shared, undo_buttons=False
        )
        left, right = st.columns((1.15, 1), gap="medium")
        beside = right.container(key="rule-effect", gap="small")
        with left:
            editor.draw(editing, beside)
        rule_effect.wait(visible)


def _go(ids: Sequence[str], chunk_id: str) -> None:
    """Open a chunk, and show the page of the table with its row."""
    listed_rows.open_chunk(chunk_id)
    st.session_state[PAGE_AT] = ids.index(chunk_id) // PAGE + 1


PARTS = {
    "Chunks": _chunks,
    "Findings": findings.draw,
    "Bulk": many_rules.draw,
    "Matrix": matrix.draw,
    "Tester": tester.draw,
    "Files": many_rules.draw_files,
    "History": undo_history.draw,
}
