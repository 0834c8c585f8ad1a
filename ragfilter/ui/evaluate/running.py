"""A run on the page: started, watched, stopped, continued."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.evaluate import runs as running
from ragfilter.evaluate import stored
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.measuring import measurable
from ragfilter.layers.clearance import viewer
from ragfilter.settings.schema import Settings
from ragfilter.stores.runs import Plan, Run
from ragfilter.text.pace import Pace, in_words
from ragfilter.ui.evaluate.measured import Measured
from ragfilter.ui.session import background, state
from ragfilter.ui.session.background import Job
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import Visit

TURN_S = 0.3


def labels(visit: Visit, name: str, *, llm: bool = False) -> Labels:
    """The labelled questions of a set, as far as the user may see their chunks. Raises InputError
    if none is left, and StoreError."""
    bench, chosen = visit.resources.bench, st.session_state.collection
    found = stored.load(bench.labels, chosen, name, llm=llm)
    catalogue = bench.collection(chosen).entries()
    return measurable(found, catalogue, viewer(state.user(), visit.settings))


def gone(visit: Visit, name: str, given: Labels, *, llm: bool = False) -> tuple[list[str], int]:
    """The labelled chunks of a set that are no longer in the collection, and how many of its
    labelled questions are therefore not among the `given` ones. Only for who may see all: others
    must not learn which chunks are hidden. Raises InputError, StoreError."""
    if not viewer(state.user(), visit.settings).unrestricted:
        return [], 0
    bench, chosen = visit.resources.bench, st.session_state.collection
    known = bench.collection(chosen).entries()
    found = stored.load(bench.labels, chosen, name, llm=llm)
    ids = sorted({i for grades in found.qrels.values() for i in grades if i not in known})
    return ids, len(found.qrels) - len(given.qrels)


def unfinished(visit: Visit, name: str, given: Labels) -> Run | None:
    """The run that `begin` would go on with. Raises StoreError."""
    wanted = plan(visit, name, given, st.session_state.profile, visit.settings)
    return visit.resources.bench.runs.unfinished(wanted)


def begin(visit: Visit, name: str, given: Labels) -> Run:
    """Begin a run of the settings in force, or go on with one that was stopped. Raises
    StoreError."""
    return begin_with(visit, name, given, st.session_state.profile, visit.settings)


def begin_with(visit: Visit, name: str, given: Labels, profile: str, settings: Settings) -> Run:
    """Begin a run of any settings, which began with `profile`. Raises StoreError."""
    resources = visit.resources
    backends = resources.backends(st.session_state.collection)
    user = state.user()
    wanted = plan(visit, name, given, profile, settings)
    run = resources.bench.runs.begin(wanted, who=resources.deployment.user)
    job = resources.measuring.get(run.id)
    if job is None or job.done:
        saved = resources.bench.runs
        resources.measuring.put(
            run.id,
            background.start(
                lambda stop: running.go_on(
                    run, given, saved, backends, user, seen=lambda *_: not stop.is_set()
                )
            ),
        )
    return run


def plan(visit: Visit, name: str, given: Labels, profile: str, settings: Settings) -> Plan:
    """What a run over these labels measures; its query set says where an LLM's count. Raises
    StoreError."""
    backends = visit.resources.backends(st.session_state.collection)
    name = stored.title(name, llm=bool(st.session_state.get("with-llm")))
    return running.plan(given, name, profile, settings, backends, state.user())


def watch(run: Run, resources: Resources) -> RagfilterError | None:
    """Show the progress of a run that is under way until it ends; what it failed with."""
    job = resources.measuring.get(run.id)
    if job is None:
        return None
    if not job.done:
        _wait(run, job, resources)
    try:
        job.value()
    except RagfilterError as error:
        return error
    return None


def load(run_id: int, resources: Resources) -> Measured:
    """A run with its records, remembered. Raises InputError if it was removed, StoreError."""
    saved = resources.bench.runs
    run = saved.get(run_id)
    found = resources.measured.get((run.id, run.done))
    if found is None:
        made = Measured(run, running.records_of(run, saved))
        found = resources.measured.put((run.id, run.done), made)
    return found


def _wait(run: Run, job: Job[None], resources: Resources) -> None:
    place = st.empty()
    row = place.container(
        key="measuring", horizontal=True, vertical_alignment="center", gap="small"
    )
    with row:
        st.button(
            "Stop",
            key="measuring-stop",
            icon=":material/stop:",
            on_click=job.stop.set,
            help="Stops after the current question. Evaluate continues from there.",
        )
        bar = st.progress(0.0, text="Measuring …")
    pace = Pace()
    while not job.wait(TURN_S):
        done, total = resources.bench.runs.get(run.id).done, run.plan.queries
        bar.progress(
            min(done / max(total, 1), 1.0),
            text=f"{done} of {total} questions {in_words(pace.left(done, total))}",
        )
    place.empty()
