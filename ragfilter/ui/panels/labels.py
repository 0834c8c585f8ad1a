"""Marks on the open chunk: how relevant it is to the question. The next unlabelled chunk opens."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.stores.labels import GRADES, Label, settle
from ragfilter.ui.look import html, numbers
from ragfilter.ui.main import problems
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import open_resources
from ragfilter.ui.session.visit import View

MARKS = {2: ("Relevant", "2"), 1: ("Partly", "1"), 0: ("Not relevant", "0")}
"""The button of every grade, and its key."""
MOST_UNDONE = 50
QUEUE = 50
"""How far down the ranking chunks are offered."""


def draw(view: View, chunk_id: str) -> None:
    """The buttons, and what was said of this chunk before."""
    try:
        standing = view.resources.bench.labels.standing(view.asked.collection, view.asked.query)
    except RagfilterError as error:
        problems.show(error, retry=False)
        return
    judged = settle(standing).get(view.asked.query.strip(), {})
    following = next((i for i in queue(view) if i not in judged and i != chunk_id), None)
    with st.container(key="marks", horizontal=True, vertical_alignment="center", gap="small"):
        for grade, (word, key) in MARKS.items():
            st.button(
                word,
                key=f"mark-{grade}",
                type="primary" if judged.get(chunk_id) == grade else "secondary",
                shortcut=key,
                on_click=_mark,
                args=(view.asked.collection, view.asked.query, chunk_id, grade, following),
                help=f"Label this chunk as {GRADES[grade]} to the question. The next unlabelled "
                "chunk opens: those beside the cut come first.",
            )
        done = marks()
        st.button(
            "Undo",
            key="mark-undo",
            icon=":material/undo:",
            shortcut="U",
            on_click=_undo,
            disabled=not done,
            help="Take back your last label." if done else "Nothing to undo.",
        )
        st.toggle(
            "Blind",
            key="blind-box",
            value=blind(),
            on_change=_choose_blind,
            help="Hides rank, distance and decisions while you label, and offers the chunks in an "
            "order that does not tell the rank.",
        )
    html.draw(f'<p class="rf-aside">{_said(view, chunk_id, standing, judged)}</p>')


def blind() -> bool:
    """Whether rank and decisions are hidden while labelling."""
    return bool(st.session_state.get("blind"))


def queue(view: View) -> list[str]:
    """The chunks to label, in the order in which they are offered: from the cut outwards, since
    labels there tell most; when blind, in an order that has nothing to do with rank."""
    ranked = [row.id for row in view.rows if row.rank][:QUEUE]
    if blind():
        return sorted(ranked, key=lambda i: _mixed(view.asked.query, i))
    kept = {row.id for row in view.rows if row.kept}
    last = max((place for place, i in enumerate(ranked) if i in kept), default=-1)
    order = sorted(range(len(ranked)), key=lambda place: abs(place - last - 0.5))
    return [ranked[place] for place in order]


def marks() -> list[tuple[int, str]]:
    """What this session has marked, label id and chunk id, the last one last."""
    found: list[tuple[int, str]] = st.session_state.setdefault("marks", [])
    return found


def _mixed(query: str, chunk_id: str) -> bytes:
    return blake2b(f"{query}\n{chunk_id}".encode("utf-8", "replace")).digest()


def _said(view: View, chunk_id: str, standing: tuple[Label, ...], judged: Collection[str]) -> str:
    """Who labelled this chunk how, and how many chunks are labelled."""
    said = [
        f"{label.who}{' (LLM)' if label.source == 'llm' else ''}: "
        f"{GRADES.get(label.grade, f'grade {label.grade}')}"
        for label in standing
        if label.chunk_id == chunk_id
    ]
    kept = [row.id for row in view.rows if row.kept]
    missing = sum(i not in judged for i in kept)
    words = "; ".join(said) if said else "No label yet"
    counts = f"{numbers.count(missing)} of {numbers.chunks(len(kept))} kept have no label"
    return html.text(f"{words}. {counts}.")


def _mark(collection: str, query: str, chunk_id: str, grade: int, following: str | None) -> None:
    try:
        resources = open_resources()
        made = resources.bench.labels.mark(
            collection, query, chunk_id, grade, who=resources.deployment.user
        )
    except RagfilterError as error:
        state.notice(str(error))
        return
    st.session_state.marks = [*marks(), (made.id, chunk_id)][-MOST_UNDONE:]
    state.open_chunk(following or chunk_id)


def _undo() -> None:
    *before, (label_id, chunk_id) = marks()
    try:
        open_resources().bench.labels.take_back(label_id)
    except RagfilterError as error:
        state.notice(str(error))
        return
    st.session_state.marks = before
    state.open_chunk(chunk_id)


def _choose_blind() -> None:
    st.session_state.blind = st.session_state["blind-box"]
