"""The map, computed in the background with progress and a Stop button, and cached."""

from __future__ import annotations

from threading import Event

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.evaluate.maps import Map, make
from ragfilter.evaluate.tune import Tuning
from ragfilter.model import User
from ragfilter.settings.schema import Settings, fields
from ragfilter.ui.look import html
from ragfilter.ui.main import problems
from ragfilter.ui.session import background
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.tune.gathered import Gathered, Stopped, Work, wait


def of(
    found: Gathered,
    pools: object,
    settings: Settings,
    user: User,
    axes: tuple[str, str],
    resources: Resources,
    *,
    again: bool,
    waiting: str = "mapping",
) -> Map | None:
    """The map over these axes, waited for; None if it was stopped, until it is asked for
    `again`. `pools` says which questions were gathered."""
    # A click on the map moves only the place in force: the map stays.
    others = tuple(settings.get(info.path) for info in fields() if info.path not in axes)
    key = ("map", pools, others, user, axes)
    work = resources.maps.get(key)
    # One that was left for another map was stopped too, and is begun again when it is come back to.
    stays = st.session_state.get("map-work") is work and not again
    if work is None or (work.job.stop.is_set() and not stays):
        work = resources.maps.put(key, _begin(found, settings, user, axes))
    wait(work, waiting)
    try:
        made = work.job.value()
    except Stopped:
        html.draw(
            '<p class="rf-empty"><b>The map was stopped.</b> Map starts it again from the '
            "beginning.</p>"
        )
        return None
    except RagfilterError as error:
        # Of a strategy that cannot keep what a place of the map asks of it.
        problems.show(error, retry=False)
        return None
    assert isinstance(made, Map)
    if made.holds(settings):
        return made
    # Its places were chosen around other values in force.
    resources.maps.put(key, _begin(found, settings, user, axes))
    return of(found, pools, settings, user, axes, resources, again=False, waiting="mapping-anew")


def _begin(found: Gathered, settings: Settings, user: User, axes: tuple[str, str]) -> Work:
    """Begin to replay. What this visitor waited for before is not waited for any more."""
    before: Work | None = st.session_state.get("map-work")
    if before is not None and not before.job.done:
        before.job.stop.set()
    progress: list[tuple[int, int, str]] = []

    def work(stop: Event) -> Gathered | Tuning | Map:
        def step(done: int, total: int) -> None:
            progress.append((done, total, "Replaying"))
            if stop.is_set():
                raise Stopped

        return make(found.pools, found.labels.qrels, settings, user, *axes, progress=step)

    begun = Work(background.start(work), progress)
    st.session_state["map-work"] = begun
    return begun
