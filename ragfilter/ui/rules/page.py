"""The Rules page. It draws one part at a time."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.rules.overview import WORDS
from ragfilter.ui.kit import problems
from ragfilter.ui.kit.rule_editor import desk, saving
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import html
from ragfilter.ui.rules import (
    bulk_change,
    chunks,
    findings_table,
    import_export,
    matrix_table,
    tester,
    undo_history,
)
from ragfilter.ui.session import link, state
from ragfilter.ui.session.visit import Visit

ABOUT = (
    "Chunks: find a chunk and edit its rule. Findings: problems in rules, and proposed rules. "
    "Bulk: one change to all filtered chunks. Matrix: what each rule does to labelled questions. "
    "Tester: which rules pasted questions meet. Files: import and export. History: every change."
)
BOXES = {link.TEXT: desk.TEXT, link.TYPES: desk.TYPES, link.SOURCES: desk.SOURCES,
         link.STATES: desk.STATES}  # fmt: skip
"""The widgets of the filter, by their parameters in the link."""


def draw(visit: Visit) -> None:
    """Draw the chosen part for the chosen collection."""
    rules = state.session().rules
    _open_link()
    try:
        work = desk.lay(state.session().collection, visit.settings, visit.resources)
        with st.container(
            key="rules-bar", horizontal=True, vertical_alignment="center", gap="small"
        ):
            part = html.choice("Part", PARTS, ABOUT, key=desk.PART, default="Chunks")
            undo_history.draw_turns(work)
            # Clear the previous part while this one is being drawn.
            fresh, rules.part = rules.part != part, part
            if fresh:
                rules.outcome = None
            bulk_change.draw_outcome()
        problems.incomplete(visit.incomplete)
        with (st.empty() if fresh else st).container(key="rules-work"):
            PARTS[part](work)
        saving.keep_all_in_browser()
        _share(work, part)
    except RagfilterError as error:
        problems.show(error)


def _open_link() -> None:
    """Open what the address names: part, filter and chunk."""
    session = state.session()
    look, session.opened = session.opened, {}
    if not look:
        return
    if (look.get(link.PART) or "Chunks") in PARTS:
        st.session_state[desk.PART] = look.get(link.PART) or "Chunks"
    session.rules.chunk = look.get(link.CHUNK)
    for name, box in BOXES.items():
        listed = look.get(name, "").split(link.COMMA)
        words = [word for word in listed if word and (name != link.STATES or word in WORDS)]
        st.session_state[box] = look.get(name, "") if name == link.TEXT else words


def _share(work: Desk, part: str) -> None:
    """Show in the address what is open, so that a reload opens it again."""
    chosen = {name: st.session_state.get(box) or "" for name, box in BOXES.items()}
    more = {k: v if isinstance(v, str) else link.COMMA.join(v) for k, v in chosen.items()}
    chunk = work.chunk(state.session().rules.chunk)
    # Addresses are passed on, so a chunk that only an operator sees is not named.
    more[link.CHUNK] = chunk.id if chunk is not None and state.user().sees(chunk) else ""
    more[link.PART] = part if part != "Chunks" else ""
    link.share(more={name: value for name, value in more.items() if value})
    link.show_address()


PARTS = {
    "Chunks": chunks.draw,
    "Findings": findings_table.draw,
    "Bulk": bulk_change.draw,
    "Matrix": matrix_table.draw,
    "Tester": tester.draw,
    "Files": import_export.draw,
    "History": undo_history.draw,
}
