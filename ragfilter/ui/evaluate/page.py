"""The Evaluate page: choose questions, run, and see how good the current settings are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.evaluate import stored
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.tune import FEW
from ragfilter.layers.clearance import viewer
from ragfilter.stores.labels import visible_labels
from ragfilter.stores.runs import Run
from ragfilter.text.numbers import counted
from ragfilter.ui.evaluate import labelling, results, running
from ragfilter.ui.evaluate import sets as editing
from ragfilter.ui.evaluate.measured import run_label
from ragfilter.ui.look import hint, html, numbers
from ragfilter.ui.main import empty, problems
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import Visit

PARTS = "Questions", "Labels"


def draw(visit: Visit) -> None:
    """The bar, the progress of a run, and its results."""
    if not visit.ready:
        empty.draw(visit, None)
        return
    try:
        sets = stored.sets(visit.resources.bench.labels, st.session_state.collection)
        saved = saved_runs(visit)
        problems.incomplete(visit.incomplete)
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
    if st.session_state.get("sets-open"):
        _sets(visit, name, sets, given)
        return
    chosen = _chosen(saved)
    if chosen is None:
        if why is None:
            html.draw(
                '<p class="rf-empty"><b>Nothing is measured yet.</b> Evaluate compares the '
                "settings on the left with every strategy, every profile, the best fixed k and "
                "the oracle.</p>"
            )
        return
    failed = running.watch(chosen, visit.resources)
    if failed is not None:
        problems.show(failed, retry=False)
    measured = running.load(chosen.id, visit.resources)
    if measured.run.done != chosen.done:
        # The list of runs still tells how far it was.
        st.rerun()
    results.draw(measured, visit)


def chosen_set(sets: Mapping[str, int]) -> str:
    """The query set in force: the first with questions, until one is chosen."""
    chosen = st.session_state.get("query-set")
    if chosen not in sets:
        chosen = next((name for name, count in sets.items() if count), next(iter(sets)))
    return str(chosen)


def choose_set(sets: Mapping[str, int], name: str) -> None:
    """The list of query sets; it says where an LLM's labels count."""
    llm = bool(st.session_state.get("with-llm"))
    _show("query-set-box", name)
    st.selectbox(
        "Questions",
        list(sets),
        key="query-set-box",
        format_func=lambda each: f"{stored.title(each, llm=llm)} · {numbers.count(sets[each])}",
        on_change=_choose_set,
        width=260,
        help="The query set to measure with. labelled: every question with labels. asked: "
        "questions asked on Inspect. Add others under Questions and labels.",
    )


def _sets(visit: Visit, name: str, sets: Mapping[str, int], given: Labels | None) -> None:
    """The questions and labels themselves, in place of results."""
    with st.container(key="sets-bar", horizontal=True, vertical_alignment="center", gap="small"):
        part = st.segmented_control(
            "Part", PARTS, key="sets-part", default=PARTS[0], required=True,
            persist_state="session", label_visibility="collapsed",
        )  # fmt: skip
        hint.beside(
            "Questions: edit the set. Labels: see who made them, where people disagree, and what "
            "an LLM proposes."
        )
    try:
        if part == PARTS[0]:
            editing.draw(visit, name, sets, given)
        else:
            labelling.draw(visit, name, sets)
    except RagfilterError as error:
        problems.show(error, retry=False)


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
        begun = running.unfinished(visit, name, given) if given is not None else None
        if (
            st.button(
                f"Evaluate {counted(count, 'question')}"
                if begun is None or not begun.done
                else f"Continue from {begun.done} of {counted(count, 'question')}",
                key="evaluate",
                type="primary",
                icon=":material/play_arrow:",
                disabled=given is None,
                help="Measures the settings on the left over the labelled questions of this set. "
                "A stopped run is continued.",
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
            # Set each time: the label of a run shows its progress.
            st.session_state["run-box"] = _chosen_id(saved)
            st.selectbox(
                "Run",
                list(saved),
                key="run-box",
                format_func=lambda each: run_label(saved[each]),
                on_change=_choose_run,
                width=330,
                help="Earlier runs on this collection, for this user.",
            )
        st.toggle(
            "Questions and labels",
            key="sets-open",
            persist_state="session",
            help="Edit the questions of this set, see who labelled what, or let an LLM propose "
            "labels.",
        )
        with st.popover(
            "More", key="evaluate-more", type="tertiary", help="Labels by an LLM, and the history."
        ):
            _more(visit)
    for note in _notes(visit, name, given) if given is not None else ():
        html.draw(f'<p class="rf-aside">{html.text(note)}</p>')
    if given is not None:
        draw_llm_note(visit)
    return saved


def _notes(visit: Visit, name: str, given: Labels) -> list[str]:
    """What must be known of labels before they are measured with."""
    notes, count = [], len(given.qrels)
    if count < FEW:
        notes.append(
            f"Only {counted(count, 'labelled question')}, so intervals are wide. Label at least "
            f"{FEW}."
        )
    gone, lost = running.gone(visit, name, given, llm=bool(st.session_state.get("with-llm")))
    bare = len(given.queries) - count - lost
    if bare:
        notes.append(
            f"{counted(bare, 'question')} {'has' if bare == 1 else 'have'} no labels and "
            f"{'is' if bare == 1 else 'are'} skipped. Label chunks on Inspect."
        )
    if gone:
        notes.append(
            f"{counted(len(gone), 'labelled chunk')} not in the collection (any more), such as "
            f"{gone[0]}: left out. Index them again, or label the chunks that replaced them."
        )
    if lost:
        notes.append(
            f"{counted(lost, 'question')} {'has' if lost == 1 else 'have'} no relevant chunk left "
            f"in the collection and {'is' if lost == 1 else 'are'} skipped."
        )
    return notes


def draw_llm_note(visit: Visit) -> None:
    """Where an LLM's labels count: that they do, and how far they agree with people's. Raises
    StoreError."""
    if not st.session_state.get("with-llm"):
        return
    bench, collection = visit.resources.bench, st.session_state.collection
    user, catalogue = viewer(state.user(), visit.settings), bench.collection(collection).entries()
    labels = visible_labels(bench.labels.standing(collection), catalogue, user)
    said = f"LLM labels count here. {stored.agreed(labels).told}"
    html.draw(f'<p class="rf-aside">{html.text(said)}</p>')


def _more(visit: Visit) -> None:
    _show("with-llm-box", bool(st.session_state.get("with-llm")))
    st.toggle(
        "Count an LLM's labels",
        key="with-llm-box",
        on_change=_choose_llm,
        help="Used for chunks that no person has labelled. Off: only people's labels count.",
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
        help="Asked questions form the query set asked. Switching this off deletes them.",
    )


def saved_runs(visit: Visit) -> Mapping[int, Run]:
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
