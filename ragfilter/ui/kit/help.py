"""Help on the page: a tour of five stops and the glossary, in a drawer on the right.

It opens by itself on the first visit. Only the browser knows which visit is the first.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from ragfilter.ui.kit import examples
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources

TERMS = {
    "background": "The distance of chunks that have nothing to do with the question: the mean of "
    "the farther half of the first 200 hits.",
    "chunk": "A passage of the corpus: the unit that is stored, found, kept or dropped.",
    "clearance": "The level that a user needs to see a chunk. 0 is public. The clearance "
    "layer hides what a user may not see.",
    "cliff": "The gap at which a cutoff cuts.",
    "comparison": 'A query about two or more things, such as "X vs Y". Each thing is a *side*.',
    "context": "The chunks that fit into the prompt, numbered for citation.",
    "cutoff": "The layer that cuts the ranked list where relevance falls off.",
    "department": "The group whose users may see a chunk. A chunk without a department is open to "
    "all.",
    "distance": "How far a chunk is from the query in the collection's space. Lower is better.",
    "expansion": "Chunks that the judge brings in along references (`EXPAND_n`).",
    "extractive": "An answer made of quoted sentences, without an LLM.",
    "fallback": "What a layer does if it cannot do its work. It is shown as an outcome.",
    "gap": "The difference between the distances of two neighbours.",
    "judge": "The layer that asks an LLM which chunks help.",
    "k": "The maximum number of results.",
    "label": "A statement of whether a chunk is relevant to a question.",
    "layer": "One step of the filter: a pure function from hits to hits and decisions.",
    "noise reduction": "The share of the irrelevant chunks in the unfiltered result that the "
    "filter drops.",
    "operator": "Somebody who sees everything, hidden chunks included.",
    "oracle": "The best prefix of each question's unfiltered ranking, chosen by the labels.",
    "pin": "To keep a chunk at any distance: the best one for a side of a comparison, one whose "
    "rule holds, or one that states a value of the query.",
    "profile": "Named settings.",
    "rank": "A hit's position by distance, from 1. Its *place* counts only the kept hits.",
    "rerank": "To score hits again with a model that reads query and chunk together.",
    "rule": "A chunk's `query_must`: the terms that a query must contain for the chunk to be kept.",
    "run": "A saved measurement of settings over a set of questions.",
    "similarity": "Closeness, computed from the distance. Higher is better, and 1 is identical.",
    "strategy": "A way to find the cut: `gap`, `fixed`, `autocut`, `adaptive_k`, `moving_avg`, "
    "`spike`, `car`, `otsu`, `relative`, `calibrated`.",
    "unfiltered": "The first k of the plain search, with which the filtered result is compared.",
}


class Stop(NamedTuple):
    """A part of the page: its name, its purpose, and its CSS selector."""

    name: str
    said: str
    part: str


STOPS = (
    Stop("Question", "Type one and press Enter, or click an example. One search finds candidates; "
         "everything else is decided from what it found.", ".st-key-ask-row"),
    Stop("Strip", "How many chunks are kept, why the list ends there, what that saves, and what "
         "each layer let through.", ".rf-strip"),
    Stop("Curve", "Every chunk by its distance. Click a point to read the chunk and see why it "
    "was kept or dropped.", ".st-key-curve-box"),
    # In narrow windows the sidebar is closed, since it would cover this text.
    Stop("Layers", "The switches and sliders in the sidebar take effect at once, without another "
    "search. Reset goes back to the profile.",
    ".stSidebar[data-collapsed=false], [aria-label='Expand sidebar']"),
    Stop("Answer", "The answers that an LLM, or quoted sentences, give from the filtered and the "
    "unfiltered chunks. Present (P) shows all of it to an audience.", ".st-key-panel"),
)  # fmt: skip


def begin_tour(resources: Resources) -> None:
    """Start the tour. It needs a result to show, so ask the first example if nothing was asked."""
    state.session().tour = 0
    offered = examples.of(state.session().collection, resources)
    if state.session().asked is None and offered:
        state.ask(offered[0].question)


def draw_tour() -> None:
    """Draw the current stop and outline its part; nothing if no tour is running."""
    now: int | None = state.session().tour
    if now is None:
        return
    stop, last = STOPS[now], len(STOPS) - 1
    outline = "outline: 3px solid var(--rf-kept); outline-offset: 3px;"
    html.draw(f"<style>:is({stop.part}) {{ {outline} }}</style>")
    with st.container(key="tour", horizontal=True, vertical_alignment="center", gap="small"):
        html.draw(
            f'<p aria-live="polite"><b>{now + 1} of {len(STOPS)} · {stop.name}.</b> {stop.said}</p>'
        )
        st.button(
            "Back", key="tour-back", disabled=not now, on_click=state.put, args=(now - 1, "tour"),
            help="The previous stop.",
        )  # fmt: skip
        st.button(
            "Next" if now < last else "Done", key="tour-next", type="primary", on_click=state.put,
            args=(now + 1 if now < last else None, "tour"),
            help="The next stop." if now < last else "End the tour.",
        )  # fmt: skip
        if now < last:
            st.button(
                "End", key="tour-end", type="tertiary", on_click=state.put, args=(None, "tour"),
                help="End the tour. Help starts it again.",
            )  # fmt: skip
    frame.mount("kit/tour.js", key="tour-look", data=stop.part, height=0)


def draw(resources: Resources) -> None:
    """Draw the button that opens the drawer. The drawer does not open by itself for a link to a
    question, since its reader came for the result."""
    first = False
    if state.session().asked is None and not state.session().pending:
        first = bool(
            frame.mount("kit/first_visit.js", key="first-visit", on_first_change=lambda: None).first
        )
    with st.container(key="guide", width="content"):
        pressed = st.button(
            "Help",
            key="help-button",
            shortcut="H",
            icon=":material/help:",
            type="tertiary",
            help="A tour of five stops, and what the words mean. The menu at the top right has the "
            "theme: light, dark or the system's.",
        )
    if pressed or first:
        _drawer(resources)
    draw_tour()


@st.dialog("Help", position="right")
def _drawer(resources: Resources) -> None:
    st.markdown("**Five stops**")
    stops = (f"{n}. **{stop.name}.** {stop.said}" for n, stop in enumerate(STOPS, 1))
    st.markdown("\n".join(stops))
    if st.button(
        "Take the tour",
        key="tour-begin",
        type="primary",
        icon=":material/tour:",
        on_click=begin_tour,
        args=(resources,),
        help="Goes from stop to stop on the page, with an example if nothing was asked yet.",
    ):
        st.rerun()
    st.markdown("**Words**")
    st.markdown("\n".join(f"- **{word}**: {meaning}" for word, meaning in TERMS.items()))
