"""The Evaluate page: how good the current settings are on labelled questions."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from ragfilter.evaluate import wording
from ragfilter.evaluate.runs import run_label
from ragfilter.stores.runs import Run
from ragfilter.text.numbers import counted
from ragfilter.ui.evaluate import labelling_mode, results, sets
from ragfilter.ui.kit import empty, problems
from ragfilter.ui.kit.runs import measuring
from ragfilter.ui.kit.runs.measuring import ChosenSet
from ragfilter.ui.look import html
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.visit import Visit

PARTS = QUESTIONS, LABELS = "Questions", "Labels"
UNASKED = 500
"""Up to this many questions are measured when the page is opened, without being asked to."""


@problems.shown(retry=True)
def draw(visit: Visit) -> None:
    """Draw the bar, the progress of a run, and its results; or the labelling mode."""
    if not visit.ready:
        empty.draw(visit, None)
        return
    problems.incomplete(visit.incomplete)
    asked = measuring.read(visit)
    if state.session().labelling:
        labelling_mode.draw(asked)
        return
    saved = _bar(asked, measuring.saved_runs(visit))
    measuring.explain(asked)
    if st.session_state.get("sets-open"):
        _sets(asked)
    elif saved:
        run = saved[_chosen_id(saved)]
        measuring.watch(run, asked.resources)
        measured = measuring.load(run.id, asked.resources)
        if measured.run.done != run.done:
            # Redraw, because the list of runs still shows the old progress.
            st.rerun()
        results.draw(measured, asked)


def _sets(asked: ChosenSet) -> None:
    """Draw the questions and labels in place of the results."""
    with st.container(key="sets-bar", horizontal=True, vertical_alignment="center", gap="small"):
        part = html.choice(
            "Part", PARTS,
            "Questions: edit the set. Labels: see who made them, where people disagree, and what "
            "an LLM proposes.",
            key="sets-part", default=QUESTIONS,
        )  # fmt: skip
    for note in _notes(asked):
        html.aside(note)
    if part == QUESTIONS:
        sets.draw_questions(asked)
    else:
        sets.draw_labels(asked)


def _bar(asked: ChosenSet, saved: Mapping[int, Run]) -> Mapping[int, Run]:
    """Draw the controls and the list of runs. Returns the runs, with one that was just started."""
    with st.container(
        key="evaluate-bar", horizontal=True, vertical_alignment="bottom", gap="small"
    ):
        measuring.choose(asked)
        pressed = st.button(
            _measure(asked), key="evaluate", type="primary", icon=":material/play_arrow:",
            disabled=asked.given is None,
            help="Measures the settings on the left over the labelled questions of this set. "
            "A stopped run is continued. Questions without labels are left out.",
        )  # fmt: skip
        # The page measures by itself if nothing is measured yet, and no LLM is called.
        unasked = asked.given is not None and len(asked.given.qrels) <= UNASKED
        if pressed or (unasked and not saved and not asked.visit.settings.judge.enabled):
            run = measuring.begin(asked, state.session().profile, asked.visit.settings)
            state.session().run = run.id
            saved = {run.id: run, **saved}
        if len(saved) > 1:
            labels = {each: run_label(run, state.session().tuned_on) for each, run in saved.items()}
            widget.select("Run", labels, _chosen_id(saved), "run-box", state.put, "run", width=330)
        st.button(
            "Label", key="open-labelling", icon=":material/edit_note:",
            on_click=state.put, args=(True, "labelling"),
            help="Label the chunks of one question after the other with the keys 2, 1 and 0.",
        )  # fmt: skip
        with st.popover("More", key="evaluate-more", type="tertiary"):
            _more(asked)
    return saved


def _measure(asked: ChosenSet) -> str:
    if asked.given is None:
        return "Measure"
    count = counted(len(asked.given.qrels), "question")
    begun = measuring.unfinished(asked)
    if begun is None or not begun.done:
        return f"Measure {count}"
    return f"Continue from {begun.done} of {count}"


def _notes(asked: ChosenSet) -> list[str]:
    """Caveats about the labels."""
    if asked.given is None:
        return []
    notes, count = wording.about_labels(asked.given), len(asked.given.qrels)
    gone, lost = asked.gone()
    if bare := len(asked.given.queries) - count - lost:
        notes.append(f"{counted(bare, 'question')} without labels: skipped.")
    if gone:
        notes.append(
            f"{counted(len(gone), 'labelled chunk')} not in the collection (any more), such as "
            f"{gone[0]}: left out. Index them again, or label the chunks that replaced them."
        )
    if lost:
        notes.append(f"{counted(lost, 'question')} without a relevant chunk left: skipped.")
    return notes


def _more(asked: ChosenSet) -> None:
    st.toggle(
        "Questions and labels", key="sets-open", persist_state="session",
        help="Edit the questions of this set, see who labelled what, or let an LLM propose labels.",
    )  # fmt: skip
    st.toggle(
        "Count an LLM's labels", key=measuring.LLM, persist_state="session",
        help="Used for chunks that no person has labelled. Off: only people's labels count.",
    )  # fmt: skip
    on = asked.book.records_history(asked.collection)
    st.toggle(
        "Keep asked questions",
        on,
        help='Keeps the questions you ask as the query set "asked". Turning this off deletes them.',
        **widget.of("history-box", on, _choose_history, asked),
    )


def _chosen_id(saved: Mapping[int, Run]) -> int:
    run = state.session().run
    return run if run in saved else next(iter(saved))


@state.tell_errors()
def _choose_history(on: bool, asked: ChosenSet) -> None:
    asked.book.record_history(asked.collection, on)
