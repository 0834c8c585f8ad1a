"""The progress of a job, with the time left and a Stop button; and panels beside it.

Using the page ends the waiting, never the job: the next run finds it in progress and waits on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.text.numbers import Pace, time_left
from ragfilter.ui.kit import problems
from ragfilter.ui.session.jobs import Job, Stopped

log = logging.getLogger(__name__)

P = ParamSpec("P")
V = TypeVar("V")
TURN_S = 0.3


def until_done(job: Job[V], key: str, what: str, *, stop: str = "") -> None:
    """Show the progress of a job until it ends. `what` describes it if the job itself does not.
    `stop` is the tooltip of the Stop button, which is omitted without one. A run may wait for
    several jobs, each with its own `key`."""
    if job.wait(TURN_S):
        return
    place = st.empty()
    with place.container(key=key, horizontal=True, vertical_alignment="center", gap="small"):
        if stop:
            st.button(
                "Stop", key=f"{key}-stop", icon=":material/stop:", on_click=job.stop.set, help=stop
            )
        bar = st.progress(0.0, text=f"{what} …")
    pace = Pace()
    while not job.wait(TURN_S):
        done, total, now = job.at
        if total:
            left = time_left(pace.left(done, total))
            bar.progress(
                min(done / total, 1.0),
                text=f"{now or what}: {done:,} of {total:,}{left and ', '}{left}",
            )
        else:
            bar.progress(0.0, text=f"{what} … {job.seconds:.0f} s")
    place.empty()


def result(job: Job[V] | None, key: str, what: str, *, stop: str = "") -> V | None:
    """Wait for a job and return its result. None if there is no job, or if it was stopped or
    failed; an error is shown."""
    if job is None:
        return None
    until_done(job, key, what, stop=stop)
    try:
        return job.value()
    except Stopped:
        return None
    except RagfilterError as error:
        problems.show(error, retry=False)
    except Exception:
        # A caller that forgets its job afterwards would never see the error.
        log.exception("%s failed", what)
        st.error(job.failure)
    return None


def unless(waits: bool, draw: Callable[P, None]) -> Callable[P, None]:
    """`draw` as a fragment, but not in a run that `waits` for something afterwards: using a
    fragment does not end the waiting, so nothing would happen until then."""
    if not waits:
        return st.fragment(draw)

    def drawn(*args: P.args, **kwargs: P.kwargs) -> None:
        # As deep in the page as the fragment, so that the browser keeps what it has drawn.
        with st.container():
            draw(*args, **kwargs)

    return drawn
