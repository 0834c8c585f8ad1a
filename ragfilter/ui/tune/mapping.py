"""The map, computed in the background with progress and a Stop button, and cached."""

from __future__ import annotations

from collections.abc import Hashable

import streamlit as st

from ragfilter.evaluate.maps import Map, make
from ragfilter.evaluate.tune import RECORD
from ragfilter.settings.schema import fields
from ragfilter.ui.kit import progress
from ragfilter.ui.look import say
from ragfilter.ui.session import state
from ragfilter.ui.session.jobs import Job
from ragfilter.ui.session.visit import Visit
from ragfilter.ui.tune.gathered import STOP, Gathered


def of(visit: Visit, found: Gathered, axes: tuple[str, str], *, again: bool) -> Map | None:
    """Wait for the map over these axes. None if it was stopped, until it is requested `again`."""
    settings = visit.settings
    # Without the settings of the axes and their record: a click on the map changes only those, and
    # the map stays valid.
    moving = {*axes, RECORD}
    others = tuple(settings.get(info.path) for info in fields() if info.path not in moving)
    key = ("map", found.key, others, state.user(), axes)
    job = visit.resources.jobs.find(key)
    # A map that was abandoned for another one was stopped too, and starts again when chosen again.
    stays = st.session_state.get("map-job") is job and not again
    failed = again and job is not None and job.failure
    if job is None or failed or (job.stop.is_set() and not stays):
        job = _begin(visit, found, axes, key)
    made = progress.result(job, "mapping", "Replaying", stop=STOP)
    if made is not None and not made.holds(settings):
        # Its grid was chosen around other values.
        job = _begin(visit, found, axes, key)
        made = progress.result(job, "mapping-anew", "Replaying", stop=STOP)
    if made is None and job.stop.is_set():
        say.empty("The map was stopped.", "Map starts it again from the beginning.")
    return made


def _begin(visit: Visit, found: Gathered, axes: tuple[str, str], key: Hashable) -> Job[Map]:
    """Start the replay, and stop the one this session waited for before."""
    before: Job[Map] | None = st.session_state.get("map-job")
    if before is not None and not before.done:
        before.stop.set()
    settings, user = visit.settings, state.user()
    jobs = visit.resources.jobs
    jobs.stop(key)
    begun: Job[Map] = jobs.start(
        user,
        key,
        lambda job: make(found.pools, found.labels.qrels, settings, user, *axes, progress=job.step),
    )
    st.session_state["map-job"] = begun
    return begun
