"""The question box and the example questions."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ragfilter.ui import state

LABELS = {
    "cleric-ac6": "cleric vs AC 6",
    "cleric-ac6-strength": "cleric, strength 17",
    "fighter-fighter": "fighter vs fighter",
    "fighter-druid": "fighter vs druid",
}
LONGEST = 34


def draw(examples: Sequence[tuple[str, str]], *, ready: bool) -> None:
    """The box; `examples` are (label, question). Nothing can be asked until `ready`."""
    with st.form("ask", border=False, enter_to_submit=True):  # noqa: SIM117
        with st.container(key="ask-row", horizontal=True, gap="small", vertical_alignment="bottom"):
            st.text_input(
                "Question",
                key="question",
                placeholder="Ask a question; Enter searches",
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
                help="One query to the store, then everything is replayed from what it found.",
            )
    if examples and ready:
        with st.container(key="examples", horizontal=True, gap="small"):
            for i, (label, question) in enumerate(examples):
                st.button(
                    label,
                    key=f"example-{i}",
                    on_click=state.ask,
                    args=(question,),
                    help=question,
                )


def short(question: str) -> str:
    """A question as a chip shows it."""
    plain = question.strip().rstrip("?")
    if len(plain) <= LONGEST:
        return question.strip()
    return plain[: LONGEST - 1].rsplit(" ", 1)[0] + " …"


def _submit() -> None:
    state.ask(st.session_state.question.strip())
