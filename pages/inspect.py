"""Inspect: one question seen through, from the store to the answer."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.pipeline import replay
from ragfilter.report import seen, summary
from ragfilter.ui import (
    ask,
    build,
    controls,
    empty,
    examples,
    frame,
    judge_words,
    problems,
    questions,
    stage,
    state,
)
from ragfilter.ui import summary as strip
from ragfilter.ui.pools import falls_short
from ragfilter.ui.resources import open_resources

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

result = replay(pool, settings)
state.share(unscored=any(need.kind == "rerank" for need in result.needs))
mine = seen(result)
operator = bool(st.session_state.operator)
view = result if operator else mine
told = summary(view, as_operator=operator)
card = judge_words.card(result, resources.prices)
# What was asked for comes first: the curve after a slider. An answer still to be made takes its
# time, and everything else is to stand by then.
first = st.session_state.fresh
if first:
    with st.sidebar:
        controls.layers(settings, told, resources, judged=card)
problems.incomplete(pool)
strip.draw(view, told)
st.fragment(stage.draw)(result, mine, put, resources, wider=falls_short(put, result, settings))
if not first:
    with st.sidebar:
        controls.layers(settings, told, resources, judged=card)
