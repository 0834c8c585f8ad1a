"""A result on the page: one sentence, before and after beside the curve, and both answers. Settings
and evidence open on a click.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.report import visible
from ragfilter.report.summary import story
from ragfilter.text import numbers
from ragfilter.ui.inspect import curve_panel, needs
from ragfilter.ui.kit import answer, empty, help, problems, share, sidebar, stacks, summary
from ragfilter.ui.kit.question_box import draw_present_button
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import link, state
from ragfilter.ui.session.visit import View


class Places(NamedTuple):
    """Where `finish` draws: the answers or the table, the panel if it is open, and the buttons."""

    below: DeltaGenerator
    panel: DeltaGenerator | None
    bar: DeltaGenerator


def begin(view: View) -> Places:
    """Draw what the user asked for first: the sentence, the clicked chunk, then the curve."""
    now, current_story = state.session(), story(view.mine)
    # One container for everything that appears or disappears with a setting; otherwise it would
    # move the curve, and the browser would redraw it.
    with st.container(key="headline"):
        problems.incomplete(view.result.pool.incomplete)
        html.heading("Result", level=1, name=view.asked.query)
        summary.draw(view, current_story)
        problems.failed(view.result)
        needs.draw(view)
        if now.tuning:
            curve_panel.controls(view)
    stage = st.container(key="stage")
    bar = _bar() if now.evidence else None
    # The answers to the question before must not stand there while this one is answered.
    place = st.empty() if now.answered != view.asked else st
    below = place.container(key="below")
    bar = bar or _bar()
    beside = None
    if now.evidence:
        with below:
            summary.draw_strip(view)
            below, beside = st.columns((1.15, 1), gap="medium")
        if _clicked():
            from ragfilter.ui.inspect import panel

            with beside:
                beside = panel.draw(view)
    with stage:
        left, right = st.columns((3, 2), gap="medium")
    with left, st.container(key="passages"):
        html.heading("Before and after")
        before, after = stacks.before_and_after(view.mine, current_story)
        if changed := len(state.changed()):
            after = replace(after, label=f"After: {numbers.counted(changed, 'setting')} changed")
        sidebar.draw_reset(f"Back to {now.profile}")
        stacks.draw((before, after), view.mine, on_open=state.open_chunk)
    with right:
        html.heading("Curve")
        curve_panel.draw(view)
    return Places(below, beside, bar)


def finish(view: View, places: Places) -> None:
    """Draw the rest. An answer may take time, so it comes last, and so does what would change the
    outcome of a clicked chunk."""
    with places.bar:
        _open_more(view)
    with places.below:
        if places.panel is None:
            html.heading("Answers")
            if not view.result.kept:
                empty.nothing_kept(view.result)
            answer.draw_both(view)
        else:
            # Loaded when the evidence is opened.
            from ragfilter.ui.inspect import hit_table

            html.heading("Chunks")
            hit_table.draw(view)
    if places.panel is not None:
        from ragfilter.ui.inspect import panel
        from ragfilter.ui.kit.rule_editor import saving

        with places.panel:
            if _clicked():
                panel.finish(view)
            else:
                panel.draw(view)
        with places.below:
            saving.keep_all_in_browser()
    now = state.session()
    now.answered = view.asked
    frame.mount("inspect/into_view.js", key="into-view", data=now.revealed)


def _bar() -> DeltaGenerator:
    return st.container(key="open-bar", horizontal=True, vertical_alignment="center", gap="small")


def _open_more(view: View) -> None:
    """Draw the buttons that open more than the result."""
    now = state.session()
    st.button(
        "Close Tune" if now.tuning else "Tune",
        key="open-tuning",
        type="primary",
        on_click=_open_tuning,
        args=(not now.tuning,),
        help="Strategy and limits of the cut, beside the curve.",
    )
    chunks = numbers.chunks(view.summary.retrieved)
    st.button(
        "Close evidence" if now.evidence else f"Evidence: {chunks}",
        key="open-evidence",
        on_click=state.put,
        args=(not now.evidence, "evidence"),
        help="Every chunk with its reason, the prompt, and the answers with their citations.",
    )
    if view.asked.recorded:
        only = bool(view.asked.reach.recorded)
        st.button(
            "Search again" if only else "Recorded hits",
            key="open-recorded",
            on_click=_ask_recorded,
            args=(not only,),
            help="Filter what a trace says was retrieved for this question, and nothing else.",
        )
    draw_present_button()
    if link.looks(visible(view.result)):
        # The address bar has the rest.
        share.draw_link(st.container(key="share", width="content"), view)
    st.space("stretch")
    help.draw(view.resources)


def _ask_recorded(on: bool) -> None:
    state.session().recorded = on
    state.renew()


def _open_tuning(on: bool) -> None:
    state.session().tuning = on
    if on:
        state.reveal(".st-key-tune")


def _clicked() -> bool:
    return bool(state.session().panel == "Chunk")
