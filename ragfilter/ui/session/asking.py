"""Asks a model when a button is pressed: once per press and in the background, so that Stop works
immediately.

A press stores a wish in the session, which stays until it is fulfilled. If a slider moves in the
meantime, the page is drawn again, finds the same call still running and waits for it. It never
makes a second call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

import streamlit as st

from ragfilter.basics.shelf import Shelf
from ragfilter.engine.complete import forget_failures
from ragfilter.model import PendingKind, Pool
from ragfilter.ui.session import background
from ragfilter.ui.session.background import Job

TICK_S = 0.15
"""Seconds between the points at which Streamlit can stop a waiting page."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One press of a button; with `again`, earlier failures are forgotten first."""

    kind: PendingKind
    token: str
    again: bool = False


def press(kind: PendingKind, *, again: bool = False) -> None:
    """Request what a need lacks. For the judge, also open its panel."""
    st.session_state.wish = Wish(kind, uuid4().hex, again)
    if kind == "judge":
        st.session_state.panel = "Judge"


def wished() -> Wish | None:
    """The wish that is not fulfilled yet."""
    return cast("Wish | None", st.session_state.get("wish"))


def forget() -> None:
    """Remove the wish, because it is fulfilled or abandoned."""
    st.session_state.pop("wish", None)


def before(pool: Pool, wish: Wish) -> Pool:
    """The pool to start from: with `again`, without its failures."""
    return forget_failures(pool, wish.kind) if wish.again else pool


def wait(wish: Wish, work: Callable[[], Pool], jobs: Shelf[Job[Any]]) -> Pool:
    """Run `work` once per wish, and return its result. Raises what `work` raises."""
    job: Job[Pool] = jobs.of(wish.token, lambda: background.start(lambda _: work()))
    tick = st.empty()
    while not job.wait(TICK_S):
        # Streamlit ends the run here if Stop was pressed or a widget changed.
        tick.empty()
    return job.value()
