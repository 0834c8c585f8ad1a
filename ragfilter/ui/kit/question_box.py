"""The question box with example questions, and the button for Present mode."""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.kit import examples
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.visit import Visit


def draw(visit: Visit) -> None:
    """Draw the box with the examples. A visit begins with the first of them, answered. Nothing can
    be asked while the collection is empty."""
    if not visit.collections:
        return
    _follow(visit)
    offered = examples.of(state.session().collection, visit.resources) if visit.ready else ()
    if offered and state.session().asked is None and not state.session().pending:
        state.ask(offered[0].question)
        state.session().pending = "example"
    with st.container(key="ask-line", horizontal=True, vertical_alignment="bottom", gap="small"):
        box(visit)
        if offered:
            questions = {literal(each.label): each.question for each in offered}
            st.menu_button(
                "Examples",
                list(questions),
                key="examples",
                type="tertiary",
                on_click=lambda: state.ask(questions[st.session_state["examples"]]),
            )


def _follow(visit: Visit) -> None:
    """Ask again if another tab has changed the collection since; tell a user who sees that."""
    asked, bench = state.session().asked, visit.resources.bench
    if asked is None or state.session().pending or asked.collection not in visit.collections:
        return
    if bench.stores.of(asked.collection).outdated(asked.version):
        state.renew()
        if bench.version_seen(asked.collection, asked.reach.user) != asked.seen:
            st.toast("Rules or chunks were changed in another tab, so the results are refreshed.")


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
    state.session().scene = 0
