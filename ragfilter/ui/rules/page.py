"""The Rules page. It draws one part at a time."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.ui.kit import problems, view_as
from ragfilter.ui.kit.rule_editor import desk, recovery
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.rules import (
    bulk,
    chunks,
    drafts,
    families,
    files,
    history,
    matrix,
    outcome,
    tester,
)
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import Visit

PART_WAS = "rules-part-was"
ABOUT = (
    "Chunks: find a chunk and edit its rule. Bulk: one change over all chunks that the filter "
    "shows. Suggest: rules that tell similar chunks apart. Matrix: what every rule does over "
    "labelled questions. Tester: paste questions and see which rules they meet. Files: import "
    "and export. History: undo or redo any change."
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
                f"Seen as {view_as.user_label(work.user)}. What this user may not see is left out "
                "as if it did not exist. View as, on the Inspect page, changes who that is."
            )
        # Clear the previous part while this one is being drawn.
        fresh = st.session_state.get(PART_WAS) != part
        st.session_state[PART_WAS] = part
        if fresh:
            outcome.forget()
        with (st.empty() if fresh else st).container(key="rules-work"):
            desk.check(work)
            PARTS[part](work)
        recovery.finish()
    except RagfilterError as error:
        problems.show(error)


def _suggest(work: Desk) -> None:
    way = elements.choice(
        "Way", WAYS, key="suggest-way", default="Families", on_change=outcome.forget
    )
    WAYS[way](work)


WAYS = {"Families": families.draw, "LLM drafts": drafts.draw}
PARTS = {
    "Chunks": chunks.draw, "Bulk": bulk.draw, "Suggest": _suggest, "Matrix": matrix.draw,
    "Tester": tester.draw, "Files": files.draw, "History": history.draw,
}  # fmt: skip
