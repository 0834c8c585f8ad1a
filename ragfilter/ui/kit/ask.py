"""The question box, the example questions, and the button for Present mode."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.ui.kit import examples, help
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.visit import Visit


def draw(visit: Visit) -> DeltaGenerator | None:
    """Draw the box, and the examples as chips. Nothing can be asked while the collection is empty.
    Returns the place for further actions once a question can be asked."""
    if not visit.collections:
        return None
    _follow(visit)
    box(visit)
    if not visit.ready:
        return None
    with st.container(key="examples", horizontal=True, gap="small"):
        for i, example in enumerate(examples.of(state.session().collection, visit.resources)):
            st.button(
                literal(example.label),
                key=f"example-{i}",
                on_click=state.ask,
                args=(example.question,),
                help=literal(example.question),
            )
        elements.hint(
            "Enter or Ask searches the store once. Switches and sliders then replay what was found."
        )
        draw_present_button()
        help.draw(visit.resources)
        return st.container(key="share", width="content")


def _follow(visit: Visit) -> None:
    """Ask the question again if another tab has changed the collection since."""
    asked = state.session().asked
    if asked is None or state.session().pending or asked.collection not in visit.collections:
        return
    if visit.resources.bench.stores.of(asked.collection).outdated(asked.version):
        state.renew()
        st.toast("Rules or chunks were changed in another tab, so the results have been refreshed.")


def box(visit: Visit) -> None:
    """Draw the box alone."""
    ready = visit.ready
    with st.form("ask", border=False, enter_to_submit=True):  # noqa: SIM117
        with st.container(key="ask-row", horizontal=True, gap="small", vertical_alignment="bottom"):
            st.text_input(
                "Question",
                state.session().query,
                key=widget.key_of("question", state.session().query),
                placeholder="Ask a question and press Enter",
                label_visibility="collapsed",
                disabled=not ready,
                autocomplete="off",
            )
            st.form_submit_button(
                "Ask",
                key="ask-button",
                type="primary",
                on_click=_submit,
                disabled=not ready,
                help="Queries the store once. Everything else is replayed from the result.",
            )


def _submit() -> None:
    state.ask(widget.entered("question"))


def draw_present_button() -> None:
    """Draw the button, with its shortcut key."""
    on = bool(state.session().present)
    with st.container(key="present-switch", width="content"):
        st.button(
            "Leave" if on else "Present",
            key="present-button",
            shortcut="P",
            icon=":material/close:" if on else ":material/present_to_all:",
            type="tertiary",
            on_click=_flip_present,
            help="Go back to the tables and settings."
            if on
            else "Present this result to an audience: large type, plain words, no settings.",
        )


def _flip_present() -> None:
    state.session().present = not state.session().present
    state.session().scene = state.session().scene_before = None
