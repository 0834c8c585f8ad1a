"""Labels for the open chunk or the selected rows: how relevant they are to the question. After a
label on the open chunk, the next unlabelled one opens.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from ragfilter.evaluate.labelling import QUEUE, next_to_label
from ragfilter.layers.cutoff import cut_of
from ragfilter.stores.labels import GRADES, Label, conflicts, settle
from ragfilter.text import numbers
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import message, quiet
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import open_resources
from ragfilter.ui.session.state import LabelChange
from ragfilter.ui.session.visit import View, author

MARKS = {2: ("Relevant", "2"), 1: ("Partly", "1"), 0: ("Not relevant", "0")}
"""The button of every grade, and its shortcut key."""
MOST_UNDONE = 50


@problems.shown()
def draw(view: View, chunk_id: str) -> None:
    """Draw the buttons and the labels this chunk already has."""
    asked, standing = view.asked, _standing(view)
    judged = _judged(view, standing)
    several = ticked(asked.query)
    following = next((i for i in queue(view) if i not in judged and i != chunk_id), None)
    with st.container(key="marks", horizontal=True, vertical_alignment="center", gap="small"):
        for grade, (word, key) in MARKS.items():
            st.button(
                word,
                key=f"mark-{grade}",
                type="primary" if judged.get(chunk_id) == grade else "secondary",
                shortcut=None if several else key,
                on_click=_mark,
                args=(asked.collection, asked.query, [chunk_id], grade, following),
                help=f"Label this chunk as {GRADES[grade]} to the question. The next unlabelled "
                "chunk opens, starting with those closest to the cut.",
            )
        _draw_undo("mark-undo", "U")
        _switch()
    html.draw(f'<p class="rf-aside">{_said(view, chunk_id, standing, judged)}</p>')


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
                args=(asked.collection, asked.query, chosen, grade, None),
                disabled=not chosen,
                help=f"Label the selected chunks as {GRADES[grade]} to the question.",
            )
        _draw_undo("mark-several-undo")
        told = f"{numbers.chunks(len(chosen))} selected" if chosen else "Tick rows to label them"
        st.markdown(quiet(told))


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


def blind() -> bool:
    """Whether rank and decisions are hidden while labelling."""
    return state.session().blind


def draw_hidden() -> None:
    """Draw what replaces rank and decisions while somebody labels blind."""
    html.draw(
        '<p class="rf-empty"><b>Hidden while you label blind.</b> Switch Blind off, in the panel, '
        "to see it again.</p>"
    )


@problems.shown()
def begin(view: View) -> None:
    """Draw the button that opens the first chunk of the queue, and the one that ends blind
    labelling."""
    judged = _judged(view, _standing(view))
    first = next((i for i in queue(view) if i not in judged), None)
    st.button(
        "Label the next chunk",
        key="mark-next",
        on_click=state.open_chunk,
        args=(first,),
        disabled=first is None,
        help="Opens the next unlabelled chunk, starting with those closest to the cut, whose "
        "labels are the most informative."
        if first
        else f"All of the first {QUEUE} chunks, and all that are kept, have a label.",
    )
    if blind():
        _switch()


def queue(view: View) -> list[str]:
    """The chunks to label, in the order offered."""
    detail = cut_of(view.shown)
    cut = detail.ids if detail else ()
    return next_to_label(view.rows, cut, mixed_by=view.asked.query if blind() else None)


def _standing(view: View) -> tuple[Label, ...]:
    return view.resources.bench.labels.standing(view.asked.collection, view.asked.query)


def _judged(view: View, standing: tuple[Label, ...]) -> dict[str, int]:
    """The grades by chunk. A blind labeller gets only their own: otherwise nobody would label a
    chunk a second time, and no two labellers could be compared."""
    me = author()
    own = (label for label in standing if label.who == me) if blind() else standing
    return settle(own).get(view.asked.query.strip(), {})


def _said(view: View, chunk_id: str, standing: tuple[Label, ...], judged: Collection[str]) -> str:
    """Draw who labelled this chunk how, and how many chunks are labelled."""
    if blind():
        standing = tuple(one for one in standing if one.chunk_id in judged)
    said = [label.told for label in standing if label.chunk_id == chunk_id]
    # The count must not tell a blind labeller whether a chunk is kept.
    counted = queue(view) if blind() else [row.id for row in view.rows if row.kept]
    missing = sum(i not in judged for i in counted)
    words = "; ".join(said) if said else "No label yet"
    if any(pair[0].chunk_id == chunk_id for pair in conflicts(standing)):
        words += ". They disagree, and the last one counts"
    of = "offered" if blind() else "kept"
    counts = f"{numbers.count(missing)} of {numbers.chunks(len(counted))} {of} have no label"
    return html.text(f"{words}. {counts}.")


@state.tell_errors()
def _mark(
    collection: str, query: str, chunk_ids: Sequence[str], grade: int, following: str | None
) -> None:
    made = open_resources().bench.labels.mark(collection, query, chunk_ids, grade, who=author())
    ids = tuple(label.id for label in made)
    mark = LabelChange(ids, chunk_ids[-1], collection, query)
    state.session().marks = [*state.session().marks, mark][-MOST_UNDONE:]
    tick(query, [])
    if following or len(chunk_ids) == 1:
        state.open_chunk(following or chunk_ids[0])


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


def _switch() -> None:
    """Draw the switch as a button: the shortcut keys do not work while a checkbox has the focus."""
    st.button(
        "Blind",
        key="blind-box",
        icon=":material/visibility_off:" if blind() else ":material/visibility:",
        type="primary" if blind() else "secondary",
        shortcut="B",
        on_click=_choose_blind,
        help="While you label, hides rank, distance, decisions and others' labels, and offers "
        "chunks in an order that does not reveal rank.",
    )


def _choose_blind() -> None:
    state.session().blind = not blind()
