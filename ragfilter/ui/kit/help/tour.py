"""A tour of five stops: each part of the page in turn, outlined, with a sentence about it."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from ragfilter.ui.kit.sidebar import examples
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources


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
_look_at = st.components.v2.component(
    "ragfilter.tour",
    # Once per stop, because a redrawn element does not scroll.
    js="""let last
    export default ({ data }) => {
      const part = document.querySelector(data)
      if (data === last || !part) return
      last = data
      part.scrollIntoView({ block: "center" })
    }""",
)


def begin(resources: Resources) -> None:
    """Start the tour. It needs a result to show, so ask the first example if nothing was asked."""
    state.session().tour = 0
    offered = examples.of(state.session().collection, resources)
    if state.session().asked is None and offered:
        state.ask(offered[0].question)


def draw() -> None:
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
    _look_at(key="tour-look", data=stop.part, height=0)
