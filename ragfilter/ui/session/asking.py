"""Asks a model when a button is pressed: once per press and in the background, so that Stop works
immediately.

A press stores a wish in the session, which stays until it is granted. If a slider moves in the
meantime, the page is drawn again, finds the same call still running and waits for it. It never
makes a second call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import streamlit as st

from ragfilter.model import PendingKind, Pool
from ragfilter.ui.session import background
from ragfilter.ui.session.background import Job

TICK_S = 0.15
"""Seconds between the points at which Streamlit can stop a waiting page."""


@dataclass(slots=True)
class Wish:
    """One press of a button, and the call once it was begun; with `again`, earlier failures are
    forgotten first."""

    kind: PendingKind
    again: bool
    job: Job[Pool] | None = None


def press(kind: PendingKind, again: bool) -> None:
    """Request what a need lacks. For the judge, also open its panel."""
    st.session_state.wish = Wish(kind, again)
    if kind == "judge":
        st.session_state.panel = "Judge"


def wished() -> Wish | None:
    """The wish that is not granted yet."""
    return cast("Wish | None", st.session_state.get("wish"))


def forget() -> None:
    """Remove the wish, because it is granted or abandoned, and stop its call."""
    wish = st.session_state.pop("wish", None)
    if wish is not None and wish.job is not None:
        wish.job.stop.set()


def wait(wish: Wish, work: Callable[[Job[Pool]], Pool]) -> Pool:
    """Run `work` once per wish, and return its result. Raises what `work` raises."""
    if wish.job is None:
        wish.job = background.start(work)
    until_done(wish.job)
    return wish.job.value()


def until_done(job: Job[Any]) -> None:
    """Wait for the job, as long as Streamlit lets this run go on."""
    if job.wait(TICK_S):
        return
    tick = st.empty()
    while not job.wait(TICK_S):
        # Streamlit ends the run here if Stop was pressed, a widget changed or the browser left.
        tick.empty()
