"""The Evaluate page: choose questions, run, and read what the settings in force are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.evaluate import stored
from ragfilter.evaluate.beir import Labels
from ragfilter.layers.clearance import viewer
from ragfilter.stores.runs import Run
from ragfilter.ui.evaluate import results, running
from ragfilter.ui.evaluate.measured import run_label
from ragfilter.ui.look import html, numbers
from ragfilter.ui.main import empty, problems
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import Visit

FEW = 20
"""Labelled questions below which figures say little."""


def draw(visit: Visit) -> None:
    """The bar, the progress of a run, and its results."""
    if not visit.ready:
        empty.draw(visit, None)
        return
    try:
        sets = stored.sets(visit.resources.bench.labels, st.session_state.collection)
        saved = _runs(visit)
    except RagfilterError as error:
        problems.show(error)
        return
    name = chosen_set(sets)
    given, why = labelled(visit, name)
    saved = _bar(visit, name, sets, given, saved)
    if why is not None:
        html.draw(
            f'<p class="rf-empty"><b>{html.text(why.message)}</b> {html.text(why.remedy)}</p>'
        )
    chosen = _chosen(saved)
    if chosen is None:
        if why is None:
            html.draw(
                '<p class="rf-empty"><b>Nothing is measured yet.</b> Evaluate measures the '
                "settings on the left beside every strategy, every profile, the best fixed k and "
                "the oracle.</p>"
            )
        return
    failed = running.watch(chosen, visit.resources)
    if failed is not None:
        problems.show(failed, retry=False)
    results.draw(running.load(chosen.id, visit.resources), saved, visit)


def chosen_set(sets: Mapping[str, int]) -> str:
    """The query set in force: the first with questions, until one is chosen."""
    chosen = st.session_state.get("query-set")
    if chosen not in sets:
        chosen = next((name for name, count in sets.items() if count), next(iter(sets)))
    return str(chosen)


def choose_set(sets: Mapping[str, int], name: str) -> None:
    """The list of query sets."""
    _show("query-set-box", name)
    st.selectbox(
        "Questions",
        list(sets),
        key="query-set-box",
        format_func=lambda each: f"{each} · {numbers.count(sets[each])}",
        on_change=_choose_set,
        width=260,
        help="The query set to measure with. labelled: every question with labels. asked: what "
        "was asked on Inspect. `ragfilter labels import` adds others.",
    )


def labelled(visit: Visit, name: str) -> tuple[Labels | None, RagfilterError | None]:
    """The labelled questions of a set, or why there are none."""
    try:
        return running.labels(visit, name, llm=bool(st.session_state.get("with-llm"))), None
    except RagfilterError as error:
        return None, error


def _bar(
    visit: Visit,
    name: str,
    sets: Mapping[str, int],
    given: Labels | None,
    saved: Mapping[int, Run],
) -> Mapping[int, Run]:
    """What is chosen, and the runs, with one that was begun now."""
    with st.container(
        key="evaluate-bar", horizontal=True, vertical_alignment="bottom", gap="small"
    ):
        choose_set(sets, name)
        count = len(given.qrels) if given is not None else 0
        if (
            st.button(
                f"Evaluate {numbers.count(count)} {'question' if count == 1 else 'questions'}",
                key="evaluate",
                type="primary",
                icon=":material/play_arrow:",
                disabled=given is None,
                help="Measures the settings on the left over the labelled questions of this set. "
                "A run that was stopped goes on.",
            )
            and given is not None
        ):
            try:
                run = running.begin(visit, name, given)
            except RagfilterError as error:
                problems.show(error, retry=False)
            else:
                st.session_state["run"] = run.id
                saved = {run.id: run, **saved}
        if saved:
            _show("run-box", _chosen_id(saved))
            st.selectbox(
                "Run",
                list(saved),
                key="run-box",
                format_func=lambda each: run_label(saved[each]),
                on_change=_choose_run,
                width=330,
                help="What was measured before, on this collection and for this user.",
            )
        with st.popover(
            "More", key="evaluate-more", type="tertiary", help="Labels by an LLM, and the history."
        ):
            _more(visit)
    if given is not None and count < FEW:
        few = numbers.count(count)
        html.draw(
            f'<p class="rf-aside">Only {few} labelled: mind the intervals. {FEW} or more questions '
            "say something.</p>"
        )
    return saved


def _more(visit: Visit) -> None:
    _show("with-llm-box", bool(st.session_state.get("with-llm")))
    st.toggle(
        "Count an LLM's labels",
        key="with-llm-box",
        on_change=_choose_llm,
        help="Where no person has labelled a chunk. Off: only people's labels count.",
    )
    book, chosen = visit.resources.bench.labels, st.session_state.collection
    try:
        records = book.records_history(chosen)
    except RagfilterError as error:
        problems.show(error, retry=False)
        return
    _show("history-box", records)
    st.toggle(
        "Keep asked questions",
        key="history-box",
        on_change=_choose_history,
        args=(visit, chosen),
        help="Asked questions form the query set asked. Switching it off forgets them.",
    )


def _runs(visit: Visit) -> Mapping[int, Run]:
    """The saved runs of this collection that were made for this user, newest first."""
    user = viewer(state.user(), visit.settings)
    user = replace(user, departments=tuple(sorted(user.departments)))
    found = visit.resources.bench.runs.saved(st.session_state.collection)
    return {run.id: run for run in found if run.plan.viewer == user}


def _chosen_id(saved: Mapping[int, Run]) -> int:
    chosen = st.session_state.get("run", 0)
    return int(chosen) if chosen in saved else next(iter(saved))


def _chosen(saved: Mapping[int, Run]) -> Run | None:
    return saved[_chosen_id(saved)] if saved else None


def _show(key: str, value: object) -> None:
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _choose_set() -> None:
    st.session_state["query-set"] = st.session_state["query-set-box"]


def _choose_run() -> None:
    st.session_state["run"] = st.session_state["run-box"]


def _choose_llm() -> None:
    st.session_state["with-llm"] = st.session_state["with-llm-box"]


def _choose_history(visit: Visit, collection: str) -> None:
    try:
        visit.resources.bench.labels.record_history(
            collection, bool(st.session_state["history-box"])
        )
    except RagfilterError as error:
        state.notice(str(error))
