"""Help on the page: a tour of three tasks and the glossary, in a drawer on the right. Neither
opens by itself."""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.kit.question_box import examples
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import View

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


TASKS = (
    "Drag the line in the curve until 4 chunks remain.",
    "Switch a layer off, and see what comes back.",
    "Open a dropped chunk, and bring it back.",
)
REMAIN = 4


def begin_tour(resources: Resources) -> None:
    """Start the tour. It needs a result, so ask the first example if nothing was asked."""
    state.session().tour = [False] * len(TASKS)
    offered = examples(state.session().collection, resources)
    if state.session().asked is None and offered:
        state.ask(next(iter(offered.values())))


def draw_tour(view: View) -> None:
    """Draw the tasks of the tour, those that were done ticked off; nothing if none is running."""
    now = state.session()
    if now.tour is None:
        return
    kept = {hit.id for hit in view.shown.kept}
    if now.chunk and now.chunk not in kept:
        now.tour_chunk = now.chunk
    switched = any(path.endswith(".enabled") and not on for path, on in now.changes.items())
    done_now = (len(kept) == REMAIN, switched, now.tour_chunk in kept)
    now.tour = [was or done for was, done in zip(now.tour, done_now, strict=True)]
    items = "".join(
        f"<li>{'✓' if done else '○'} {html.text(task)}</li>"
        for task, done in zip(TASKS, now.tour, strict=True)
    )
    with st.container(key="tour", gap="small"):
        html.draw(f'<ul aria-live="polite" aria-label="Tour">{items}</ul>')
        st.button("Done" if all(now.tour) else "End the tour", key="tour-end", on_click=_end)


def _end() -> None:
    state.session().tour, state.session().tour_chunk = None, ""


def draw(resources: Resources) -> None:
    """Draw the button that opens the tour and the glossary."""
    with st.container(key="guide", width="content"):
        if st.button(
            "Help", key="help-button", shortcut="H", icon=":material/help:", type="tertiary"
        ):
            _drawer(resources)


@st.dialog("Help", position="right")
def _drawer(resources: Resources) -> None:
    st.markdown("**Three things to try**")
    st.markdown("\n".join(f"{n}. {task}" for n, task in enumerate(TASKS, 1)))
    if st.button(
        "Take the tour", key="tour-begin", type="primary", on_click=begin_tour, args=(resources,)
    ):
        st.switch_page("pages/inspect.py")
    st.markdown("**Words**")
    st.markdown("\n".join(f"- **{word}**: {meaning}" for word, meaning in TERMS.items()))
