"""The panel beside the curve: one page at a time, so that none is drawn unseen."""

from __future__ import annotations

import streamlit as st

from ragfilter.model import Result
from ragfilter.ui.look import hint
from ragfilter.ui.panels import (
    answer as answer_panel,
)
from ragfilter.ui.panels import (
    chunk as chunk_panel,
)
from ragfilter.ui.panels import (
    clearance,
)
from ragfilter.ui.panels import (
    judge as judge_panel,
)
from ragfilter.ui.panels import (
    others as other_panels,
)
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.state import PANELS, Asked

HEIGHT = 456


def draw(result: Result, mine: Result, asked: Asked, resources: Resources) -> None:
    """The switch and the page it shows. `mine` is the result as its user sees it."""
    with st.container(key="panel", border=True, height=HEIGHT, gap="small"):
        if st.session_state.get("panel-box") != st.session_state.panel:
            st.session_state["panel-box"] = st.session_state.panel
        with st.container(
            key="panel-bar", horizontal=True, vertical_alignment="center", gap="small"
        ):
            st.segmented_control(
                "Panel",
                PANELS,
                key="panel-box",
                required=True,
                on_change=_switch,
                label_visibility="collapsed",
            )
            hint.beside(
                "Answer: filtered and unfiltered, side by side. Prompt: what is sent to the LLM. "
                "Chunk: text, rule and references. Judge: what the LLM says about each chunk, "
                "and what it costs. Rounds: the re-query loop. Debug: the full trace."
            )
        clearance.note(st.session_state.panel, result.user)
        match st.session_state.panel:
            case "Prompt":
                other_panels.prompt(mine)
            case "Chunk":
                chunk_panel.draw(result, mine, asked, resources)
            case "Judge":
                judge_panel.draw(mine, resources)
            case "Rounds":
                other_panels.rounds(mine)
            case "Debug":
                other_panels.debug(mine)
            case _:
                answer_panel.draw(result, mine, resources)


def _switch() -> None:
    st.session_state.panel = st.session_state["panel-box"]
