"""Inspect: one question seen through, from the store to the answer."""

from __future__ import annotations

import streamlit as st

from ragfilter.engine.replay import replay
from ragfilter.errors import RagfilterError
from ragfilter.report import rows, seen, summary
from ragfilter.ui.curve import panel as curve_panel
from ragfilter.ui.look import frame
from ragfilter.ui.main import ask, empty, needs, problems, table
from ragfilter.ui.main import summary as strip
from ragfilter.ui.panels import judge_words, panel
from ragfilter.ui.session import build, questions, state
from ragfilter.ui.session.pools import falls_short
from ragfilter.ui.session.resources import open_resources
from ragfilter.ui.sidebar import controls, examples

frame.dress()
try:
    state.begin()
    with st.spinner("Opening the workspace …"):
        resources = open_resources()
        collections = questions.collections(resources)
    settings = state.settings()
except RagfilterError as error:
    problems.show(error)
    st.stop()

chosen = st.session_state.collection
info = collections.get(chosen)
labels = {name: questions.label(each) for name, each in collections.items()}
with st.sidebar:
    controls.choices(labels)
problems.notices(state.notices())
if not collections:
    if empty.no_collection(resources):
        questions.forget_collections()
        st.rerun()
    st.stop()

offered = examples.of(chosen, resources)
ask.draw(offered, ready=info is not None and info.count > 0)
if info is not None and info.count == 0:
    with st.sidebar:
        controls.layers(settings, None, resources)
    empty.empty_collection(chosen)
    st.stop()

try:
    pool = questions.pool(settings, resources)
except RagfilterError as error:
    with st.sidebar:
        controls.layers(settings, None, resources)
    problems.show(error)
    st.stop()
put = state.asked()
if pool is None or put is None:
    state.share()
    with st.sidebar:
        controls.layers(settings, None, resources)
    # Whoever tries the demo is offered the other one too.
    demos = build.missing(collections) if chosen in build.DEMOS else []
    if empty.no_question(offered, demos, resources):
        questions.forget_collections()
        st.rerun()
    st.stop()

result = replay(pool, settings, state.user())
state.share(unscored=any(need.kind == "rerank" for need in result.needs))
mine = seen(result)
operator = bool(st.session_state.operator)
view = result if operator else mine
told = summary(view, as_operator=operator)
card = judge_words.card(result, resources.prices)
shown = rows(view, as_operator=operator)
problems.incomplete(pool)
strip.draw(view, told)
with st.container(key="stage"):
    left, right = st.columns((1.28, 1), gap="medium")
below = st.container()
# What was asked for is drawn first: the chunk that was clicked, else the curve. An answer may take
# its time, so it comes when everything else is there.
clicked = st.session_state.panel == "Chunk"
if clicked:
    with right:
        panel.draw(result, mine, put, resources)
with left:
    curve_panel.draw(view, shown)
with st.sidebar:
    controls.layers(settings, told, resources, judged=card)
with below:
    table.draw(view, shown, rows(mine) if operator else shown)
    # It floats. Above the others, they would be drawn anew whenever it comes or goes.
    needs.draw(result, resources, wider=falls_short(put, result, settings))
if not clicked:
    with right:
        panel.draw(result, mine, put, resources)
