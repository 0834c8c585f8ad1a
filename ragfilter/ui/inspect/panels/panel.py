"""The panel next to the curve. It draws one tab at a time."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.ui.inspect.panels import labels
from ragfilter.ui.kit import empty, view_as
from ragfilter.ui.look import elements, html
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.state import PANELS
from ragfilter.ui.session.visit import View

HEIGHT = 584
"""Minimum height in pixels; the style sheet uses the height of the window."""


def draw(view: View) -> DeltaGenerator:
    """Draw the tabs and the chosen page. Returns the panel, which `finish` completes."""
    panel = st.container(key="panel", border=True, height=HEIGHT, gap="small")
    with panel:
        with st.container(
            key="panel-bar", horizontal=True, vertical_alignment="center", gap="small"
        ):
            st.segmented_control(
                "Panel",
                PANELS,
                default=state.session().panel,
                required=True,
                label_visibility="collapsed",
                **widget.of("panel-box", state.session().panel, state.put, "panel"),
            )
            elements.hint(
                "Answer: filtered and unfiltered, side by side. Prompt: what is sent to the LLM. "
                "Chunk: text, rule and references. Judge: what the LLM says about each chunk, "
                "and what it costs. Rounds: the re-query loop. Debug: the full trace."
            )
        html.heading(state.session().panel)
        view_as.draw_note(state.session().panel, view.user)
        _page(view)
    return panel


def finish(view: View) -> None:
    """Draw what the page of the open chunk shows last."""
    from ragfilter.ui.inspect.panels import chunk

    chunk.finish(view)


def _page(view: View) -> None:
    """Draw the chosen page. Its code is imported the first time it is drawn."""
    if labels.blind() and state.session().panel != "Chunk":
        labels.draw_hidden()
        labels.begin(view)
        return
    if not view.result.kept and not labels.blind():
        empty.nothing_kept(view.result)
    match state.session().panel:
        case "Chunk":
            from ragfilter.ui.inspect.panels import chunk

            chunk.draw(view)
        case "Judge":
            from ragfilter.ui.inspect.panels import judge

            judge.draw(view)
        case "Prompt" | "Rounds" | "Debug" as name:
            from ragfilter.ui.inspect.panels import others

            {"Prompt": others.prompt, "Rounds": others.rounds, "Debug": others.debug}[name](
                view.mine
            )
        case _:
            from ragfilter.ui.kit import answer

            answer.draw(view)
