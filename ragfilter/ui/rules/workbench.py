"""The Rules page. It draws one part at a time."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.ui.look import hint, html
from ragfilter.ui.main import problems
from ragfilter.ui.panels import clearance
from ragfilter.ui.rules import bulk, chunks, desk, files, history, matrix, suggestions, tester
from ragfilter.ui.rules.desk import Desk
from ragfilter.ui.session.visit import Visit

PARTS = CHUNKS, *_ = ("Chunks", "Bulk", "Suggest", "Matrix", "Tester", "Files", "History")
PART_WAS = "rules-part-was"
ABOUT = (
    "Chunks: find a chunk and edit its rule. Bulk: one change over all chunks that the filter "
    "shows. Suggest: rules that tell similar chunks apart. Matrix: what every rule does over "
    "labelled questions. Tester: paste questions and see which rules they meet. Files: import "
    "and export. History: undo or redo any change."
)


def draw(visit: Visit) -> None:
    """The chosen part, over the chosen collection."""
    with st.container(key="rules-bar", horizontal=True, vertical_alignment="center", gap="small"):
        part = st.segmented_control(
            "Part",
            PARTS,
            key="rules-part",
            default=CHUNKS,
            required=True,
            persist_state="session",
            label_visibility="collapsed",
        )
        hint.beside(ABOUT)
    try:
        work = desk.lay(st.session_state.collection, visit.settings, visit.resources)
        problems.incomplete(visit.incomplete)
        _hidden(work)
        # Of another part nothing stays while this one is made.
        fresh = st.session_state.get(PART_WAS) != part
        st.session_state[PART_WAS] = part
        if fresh:
            bulk.forget()
        with (st.empty() if fresh else st).container(key="rules-work"):
            desk.check(work)
            _part(str(part), work)
    except RagfilterError as error:
        problems.show(error)


def _part(part: str, work: Desk) -> None:
    match part:
        case "Bulk":
            bulk.draw(work)
        case "Suggest":
            suggestions.draw(work)
        case "Matrix":
            matrix.draw(work)
        case "Tester":
            tester.draw(work)
        case "Files":
            files.draw(work)
        case "History":
            history.draw(work)
        case _:
            chunks.draw(work)


def _hidden(work: Desk) -> None:
    """Say as whom the page is seen, where that may hide something."""
    if not work.user.unrestricted:
        html.draw(
            f'<p class="rf-aside">Seen as {html.text(clearance.called(work.user))}. What this '
            "user may not see is left out as if it did not exist. <b>View as</b> on the Inspect "
            "page changes that.</p>"
        )
