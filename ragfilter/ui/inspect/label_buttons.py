"""Labels for the open chunk: how relevant it is to the question."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.stores.labels import GRADES, Label, conflicts, qrels_of
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import message
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import open_resources
from ragfilter.ui.session.state import MAX_MARKS, LabelChange
from ragfilter.ui.session.visit import View, author

MARKS = {2: ("Relevant", "2"), 1: ("Partly", "1"), 0: ("Not relevant", "0")}
"""The button of every grade, and its shortcut key."""


def grades(view: View) -> dict[str, int]:
    """The grades of the question's chunks, by id. Empty if they cannot be read: `draw` says why."""
    try:
        return _settled(view, _standing(view))
    except RagfilterError:
        return {}


@problems.shown()
def draw(view: View, chunk_id: str) -> None:
    """Draw the buttons and the labels this chunk already has."""
    asked, standing = view.asked, _standing(view)
    judged = _settled(view, standing)
    with st.container(key="marks", horizontal=True, vertical_alignment="center", gap="small"):
        for grade, (word, key) in MARKS.items():
            st.button(
                word,
                key=f"mark-{grade}",
                type="primary" if judged.get(chunk_id) == grade else "secondary",
                shortcut=key,
                on_click=_mark,
                args=(asked.collection, asked.query, chunk_id, grade),
                help=f"Label this chunk as {GRADES[grade]} to the question.",
            )
        done = state.session().marks
        st.button(
            "Undo",
            key="mark-undo",
            icon=":material/undo:",
            shortcut="U",
            on_click=_undo,
            disabled=not done,
            help="Undoes your last label." if done else "Nothing to undo.",
        )
    if labelled_by := _said(chunk_id, standing):
        html.draw(f'<p class="rf-aside">{labelled_by}</p>')


def _standing(view: View) -> tuple[Label, ...]:
    return view.resources.bench.labels.standing(view.asked.collection, view.asked.query)


def _settled(view: View, standing: tuple[Label, ...]) -> dict[str, int]:
    return qrels_of(standing).get(view.asked.query.strip(), {})


def _said(chunk_id: str, standing: tuple[Label, ...]) -> str:
    """Who labelled this chunk how; empty if nobody did."""
    words = "; ".join(label.told for label in standing if label.chunk_id == chunk_id)
    if any(pair[0].chunk_id == chunk_id for pair in conflicts(standing)):
        words += ". They disagree, and the last one counts"
    return html.text(f"{words}.") if words else ""


@state.tell_errors()
def _mark(collection: str, query: str, chunk_id: str, grade: int) -> None:
    marked = open_resources().bench.labels.mark(collection, query, [chunk_id], grade, who=author())
    ids = tuple(label.id for label in marked)
    mark = LabelChange(ids, chunk_id, collection, query)
    state.session().marks = [*state.session().marks, mark][-MAX_MARKS:]
    state.open_chunk(chunk_id)


@state.tell_errors()
def _undo() -> None:
    if not state.session().marks:
        # The key was pressed again before the page had disabled the button.
        return
    *before, mark = state.session().marks
    open_resources().bench.labels.take_back(mark.label_ids)
    state.session().marks = before
    asked = state.session().asked
    if asked is None or (asked.collection, asked.query) != (mark.collection, mark.query):
        st.toast(message(f"Undone: the last label for “{mark.query}” in {mark.collection}."))
    else:
        state.open_chunk(mark.chunk_id)
