"""A run on the page: start, watch, stop, continue and open it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ragfilter.evaluate import query_sets
from ragfilter.evaluate import runs as running
from ragfilter.evaluate.runs import MeasuredRun
from ragfilter.settings.schema import Settings
from ragfilter.stores.runs import Plan, Run
from ragfilter.ui.kit import progress
from ragfilter.ui.kit.runs.chosen import ChosenSet, llm
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import author

STOP = "Stops after the current question. Measure continues from there."


def plan(asked: ChosenSet, profile: str, settings: Settings) -> Plan:
    """The plan of a run with these settings, which started from `profile`. Its query set says if an
    LLM's labels count. Requires labelled questions. Raises StoreError."""
    assert asked.given is not None
    resources, name = asked.resources, query_sets.title(asked.name, llm=llm())
    backends, user = resources.backends(asked.collection), state.user()
    return running.plan(asked.given, name, profile, settings, backends, user, resources.bench)


def unfinished(asked: ChosenSet) -> Run | None:
    """The unfinished run that `begin` would continue, if any. Raises StoreError."""
    wanted = plan(asked, state.session().profile, asked.visit.settings)
    return asked.resources.bench.runs.unfinished(wanted)


def begin(asked: ChosenSet, profile: str, settings: Settings) -> Run:
    """Start a run, or continue one that was stopped. Raises StoreError."""
    resources, saved, given = asked.resources, asked.resources.bench.runs, asked.given
    assert given is not None
    backends = resources.backends(asked.collection)
    run = saved.begin(plan(asked, profile, settings), who=author())
    resources.jobs.start(
        state.user(),
        _key(run),
        lambda job: running.go_on(run, given, saved, backends, seen=job.tell),
        again=True,
    )
    return run


def watch(run: Run, resources: Resources) -> bool:
    """Show the progress of a run until it ends. Returns False if it failed."""
    job = resources.jobs.find(_key(run))
    progress.result(job, "measuring", "Measuring", stop=STOP)
    return job is None or not job.failure


def load(run_id: int, resources: Resources) -> MeasuredRun:
    """A run with its records, cached. Raises InputError if it was removed, StoreError."""
    saved = resources.bench.runs
    run = saved.get(run_id)
    return resources.measured.of((run.id, run.done), lambda: running.load(run, saved))


def open_inspect(query: str, profile: str, changes: Mapping[str, Any]) -> None:
    """Open this question in Inspect with these settings."""
    state.take(profile, changes)
    state.ask(query)
    st.switch_page("pages/inspect.py")


def open_labelling() -> None:
    """Open Evaluate's labelling mode."""
    state.session().labelling = True
    st.switch_page("pages/evaluate.py")


def open_compare(run: Run) -> None:
    """Open Compare with this run as side B, over its questions."""
    name, _, _ = query_sets.untitled(run.plan.query_set)
    state.session().compared = {"a": "unfiltered", "b": f"run-{run.id}", "set": name}
    st.switch_page("pages/compare.py")


def _key(run: Run) -> tuple[str, int]:
    return "run", run.id
