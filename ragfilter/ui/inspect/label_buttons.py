"""Labels for the open chunk or the selected rows: how relevant they are to the question."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.stores.labels import GRADES, Label, conflicts, qrels_of
from ragfilter.text import numbers
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import message, quiet
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import open_resources
from ragfilter.ui.session.state import MOST_MARKS, LabelChange
from ragfilter.ui.session.visit import View, author

MARKS = {2: ("Relevant", "2"), 1: ("Partly", "1"), 0: ("Not relevant", "0")}
"""The button of every grade, and its shortcut key."""


def grades(view: View) -> dict[str, int]:
    """The grades of the question's chunks, by id. None if they cannot be read: `draw` says why."""
    try:
        return _settled(view, _standing(view))
    except RagfilterError:
        return {}


@problems.shown()
def draw(view: View, chunk_id: str) -> None:
    """Draw the buttons and the labels this chunk already has."""
    asked, standing = view.asked, _standing(view)
    judged = _settled(view, standing)
    several = ticked(asked.query)
    with st.container(key="marks", horizontal=True, vertical_alignment="center", gap="small"):
        for grade, (word, key) in MARKS.items():
            st.button(
                word,
                key=f"mark-{grade}",
                type="primary" if judged.get(chunk_id) == grade else "secondary",
                shortcut=None if several else key,
                on_click=_mark,
                args=(asked.collection, asked.query, [chunk_id], grade),
                help=f"Label this chunk as {GRADES[grade]} to the question.",
            )
        _draw_undo("mark-undo", "U")
    if labelled_by := _said(chunk_id, standing):
        html.draw(f'<p class="rf-aside">{labelled_by}</p>')


def draw_several(view: View, shown: Collection[str]) -> None:
    """Draw the buttons that label the ticked rows among those that are `shown`."""
    asked = view.asked
    chosen = [i for i in ticked(asked.query) if i in shown]
    with st.container(key="marks-several", horizontal=True, vertical_alignment="center"):
        for grade, (word, key) in MARKS.items():
            st.button(
                word,
                key=f"mark-several-{grade}",
                shortcut=key if chosen else None,
                on_click=_mark,
                args=(asked.collection, asked.query, chosen, grade),
                disabled=not chosen,
                help=f"Label the selected chunks as {GRADES[grade]} to the question.",
            )
        _draw_undo("mark-several-undo")
        words = f"{numbers.chunks(len(chosen))} selected" if chosen else "Tick rows to label them"
        st.markdown(quiet(words))


def _draw_undo(name: str, shortcut: str | None = None) -> None:
    done = state.session().marks
    st.button(
        "Undo",
        key=name,
        icon=":material/undo:",
        shortcut=shortcut,
        on_click=_undo,
        disabled=not done,
        help="Undoes your last label, or all labels of the last batch."
        if done
        else "Nothing to undo.",
    )


def ticked(query: str) -> list[str]:
    """The chunks that are ticked for labelling for this question."""
    asked, ids = state.session().ticked
    return list(ids) if asked == query else []


def tick(query: str, ids: Sequence[str]) -> None:
    """Tick exactly these chunks."""
    state.session().ticked = query, list(ids)


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
def _mark(collection: str, query: str, chunk_ids: Sequence[str], grade: int) -> None:
    marked = open_resources().bench.labels.mark(collection, query, chunk_ids, grade, who=author())
    ids = tuple(label.id for label in marked)
    mark = LabelChange(ids, chunk_ids[-1], collection, query)
    state.session().marks = [*state.session().marks, mark][-MOST_MARKS:]
    tick(query, [])
    if len(chunk_ids) == 1:
        state.open_chunk(chunk_ids[0])


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
