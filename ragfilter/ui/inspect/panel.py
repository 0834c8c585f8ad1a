"""The panel beside the curve, and its plain pages: the exact prompt, the re-query rounds, the debug
trace.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.answer.stream import VERSION, messages
from ragfilter.model import PoolResult, Rounds
from ragfilter.report import trace_text
from ragfilter.text import numbers
from ragfilter.ui.kit import empty, view_as
from ragfilter.ui.look import elements, html
from ragfilter.ui.session import answers, state, widget
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
        html.heading(state.session().panel)
        view_as.draw_note(state.session().panel, view.user)
        _page(view)
    return panel


def finish(view: View) -> None:
    """Draw what the page of the open chunk shows last."""
    from ragfilter.ui.inspect import chunk_panel

    chunk_panel.finish(view)


def _page(view: View) -> None:
    """Draw the chosen page. Its code is imported the first time it is drawn."""
    if not view.result.kept:
        empty.nothing_kept(view.result)
    match state.session().panel:
        case "Chunk":
            from ragfilter.ui.inspect import chunk_panel

            chunk_panel.draw(view)
        case "Judge":
            from ragfilter.ui.inspect import judge_panel

            judge_panel.draw(view)
        case "Prompt" | "Rounds" | "Debug" as name:
            {"Prompt": prompt, "Rounds": rounds, "Debug": debug}[name](view.mine)
        case _:
            from ragfilter.ui.kit import answer

            answer.draw(view)


@st.fragment
def prompt(result: PoolResult) -> None:
    """The messages as they are sent, for either context."""
    both = {side.label: side for side in answers.sides(result)}
    with st.container(key="prompt-bar", horizontal=True, vertical_alignment="center", gap="small"):
        chosen = elements.choice(
            "Context", both,
            "The prompt with the kept chunks, or with those of a plain search.",
            key="prompt-side", default="filtered",
        )  # fmt: skip
    side = both[chosen]
    sent, tokens = numbers.chunks(len(side.context.chunks)), numbers.tokens(side.context.tokens)
    elements.aside(f"{sent}, about {tokens} of chunk text; version {VERSION}")
    for message in messages(result.query, side.context):
        html.draw(f'<p class="rf-caption">{html.text(message.role)}</p>')
        st.code(message.content, language=None, wrap_lines=True)


def rounds(result: PoolResult) -> None:
    """Draw what another retrieval that excludes the chunks already seen would have brought."""
    detail = result.trace("query_must").detail
    if not isinstance(detail, Rounds):
        html.draw(
            '<p class="rf-empty"><b>No rounds.</b> Switch query_must on to see how many times a '
            "re-query loop would have asked again.</p>"
        )
        return
    html.draw(f'<p class="rf-say">{html.text(_rounds_text(detail, result))}</p>')
    table = pd.DataFrame(
        {
            "round": [r.number for r in detail.rounds],
            "retrieved": [len(r.retrieved) for r in detail.rounds],
            "excluded": [len(r.excluded) for r in detail.rounds],
            "kept": [len(r.kept) for r in detail.rounds],
        }
    )
    table["kept so far"] = table["kept"].cumsum()
    with st.container(key="rounds"):
        st.dataframe(table, hide_index=True, height="content")


def _rounds_text(detail: Rounds, result: PoolResult) -> str:
    calls = result.pool.queries
    loop = f"A re-query loop would take {numbers.counted(len(detail.rounds), 'round')}"
    rounds = f"{loop} to find {len(detail.kept)} of {detail.k} clean chunks"
    missed = numbers.chunks(detail.short) if detail.short else "none"
    asked = "one store query" if calls == 1 else f"{calls} store queries"
    return f"{rounds}, and miss {missed} that the wide pool holds. The pool took {asked}."


def debug(result: PoolResult) -> None:
    """Draw the trace as text, as the user may see it."""
    st.code(trace_text(result), language=None, wrap_lines=False)
