"""The Rules page. It draws one part at a time."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.ui.kit import problems, view_as
from ragfilter.ui.kit.rule_editor import desk, saving
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.rules import (
    bulk_change,
    change_preview,
    chunks,
    drafts,
    family_proposals,
    findings_table,
    import_export,
    matrix_table,
    tester,
    undo_history,
)
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import Visit

PART_WAS = "rules-part-was"
ABOUT = (
    "Chunks: find a chunk and edit its rule. Findings: problems in the rules, and fixes. Suggest: "
    "rules that tell similar chunks apart. Bulk: one change to all filtered chunks. Matrix: what "
    "each rule does to labelled questions. Tester: which rules pasted questions meet. Files: "
    "import and export. History: undo and redo."
)


def draw(visit: Visit) -> None:
    """Draw the chosen part for the chosen collection."""
    with st.container(key="rules-bar", horizontal=True, vertical_alignment="center", gap="small"):
        part = elements.choice("Part", PARTS, ABOUT, key=desk.PART, default="Chunks")
    try:
        work = desk.lay(state.session().collection, visit.settings, visit.resources)
        problems.incomplete(visit.incomplete)
        if not work.user.unrestricted:
            elements.aside(
                f"Seen as {view_as.user_label(work.user)}: chunks that this user may not see are "
                "left out."
            )
        # Clear the previous part while this one is being drawn.
        fresh = st.session_state.get(PART_WAS) != part
        st.session_state[PART_WAS] = part
        if fresh:
            change_preview.forget_outcome()
        with (st.empty() if fresh else st).container(key="rules-work"):
            PARTS[part](work)
        saving.keep_all_in_browser()
    except RagfilterError as error:
        problems.show(error)


def _suggest(work: Desk) -> None:
    way = elements.choice(
        "Way", WAYS, key="suggest-way", default="Families", on_change=change_preview.forget_outcome
    )
    WAYS[way](work)


WAYS = {"Families": family_proposals.draw, "LLM drafts": drafts.draw}
PARTS = {
    "Chunks": chunks.draw,
    "Findings": findings_table.draw,
    "Suggest": _suggest,
    "Bulk": bulk_change.draw,
    "Matrix": matrix_table.draw,
    "Tester": tester.draw,
    "Files": import_export.draw,
    "History": undo_history.draw,
}
