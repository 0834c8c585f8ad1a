"""The session's question: when it is asked, and how its pool is gathered and completed.

The store is only asked when something is submitted (a question, a collection, an edit, a new
session), never because a setting changed. A model is only asked when a button is pressed: once per
press and in the background. If a slider moves meanwhile, the next run waits for the same call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.engine.complete import complete, forget_failures
from ragfilter.engine.replay import replay
from ragfilter.errors import RagfilterError
from ragfilter.model import PendingKind, Pool
from ragfilter.settings.schema import Settings
from ragfilter.ui.session import pools, state
from ragfilter.ui.session.jobs import Job, Stoppable
from ragfilter.ui.session.resources import Resources, open_resources

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ModelRequest:
    """One press of a button that completes the pool; with `again`, earlier failures are forgotten
    first."""

    kind: PendingKind
    again: bool


def request(kind: PendingKind, again: bool) -> None:
    """Request what a need lacks. For the judge, also open its panel."""
    st.session_state.request = ModelRequest(kind, again)
    if kind == "judge":
        st.session_state.panel = "Judge"


def abandon(resources: Resources) -> None:
    """Stop the call that a button has requested, if it is in progress."""
    resources.jobs.stop(st.session_state.pop("request", None))


def pool(settings: Settings, resources: Resources) -> Pool | None:
    """The pool of the current question, None if there is none. Raises RagfilterError."""
    pending, user = st.session_state.pending, state.user()
    # Always present: if it came and went, the browser would redraw everything below it.
    place = st.empty()
    question = _question(pending)
    if pending and question:
        abandon(resources)
        with _waiting(place, "Searching …"):
            # Loaded first, so that loading does not count as search time.
            resources.bench.embedder_of(st.session_state.collection).prepare()
            asked = pools.put(question, st.session_state.collection, settings, user, resources)
            found = pools.pool_of(asked, settings, resources)
            # A link says whether it was shared before scores were fetched.
            scored = not st.session_state.pop("unscored", False)
            found = pools.settle(
                asked, found, settings, user, resources, score=scored, replay=state.replays().of
            )
        _remember(asked)
        _record(asked, resources)
        state.looked()
        return found
    asked_before = state.asked()
    st.session_state.pending = False
    if asked_before is None:
        return None
    found = pools.pool_of(asked_before, settings, resources)
    if st.session_state.pop("settle", False):
        with _waiting(place, "Scoring …"):
            found = pools.settle(asked_before, found, settings, user, resources)
    pressed = cast("ModelRequest | None", st.session_state.get("request"))
    if pressed is None:
        return found
    return _fulfil(pressed, found, asked_before, settings, resources, place)


def follow(collection: str, before: str, resources: Resources) -> None:
    """Update the current question after an edit of rules in `collection`, which had the version
    `before`. The question is asked again only if that needs a search. Raises RagfilterError."""
    asked, settings, user = state.asked(), state.settings(), state.user()
    if asked is None:
        return
    now = None
    if asked.collection == collection and not st.session_state.pending:
        now = pools.follow(asked, before, settings, user, resources)
    if now is None:
        state.renew()
        return
    # A call in progress started with the old rules.
    abandon(resources)
    st.session_state.asked = now
    found = pools.pool_of(now, settings, resources)
    st.session_state.settle = bool(state.replays().of(found, settings, user).needs)


def _fulfil(
    pressed: ModelRequest,
    pool: Pool,
    asked: state.AskedQuestion,
    settings: Settings,
    resources: Resources,
    place: DeltaGenerator,
) -> Pool:
    """The pool, completed with what a button requested."""
    if pressed.again:
        pool = forget_failures(pool, pressed.kind)
    user, backends = state.user(), resources.backends(asked.collection)
    needs = [need for need in replay(pool, settings, user).needs if need.kind == pressed.kind]

    def work(job: Job[Pool]) -> Pool:
        chat = backends.chat and Stoppable(backends.chat, job.stop)
        return complete(pool, needs, settings, replace(backends, chat=chat), user)

    if needs:
        with _waiting(place, "Asking the LLM …" if pressed.kind == "judge" else "Scoring …"):
            job = resources.jobs.start(user, pressed, work)
            job.attend()
        try:
            pool = pools.keep(asked, job.value(), resources)
        except Exception:
            abandon(resources)
            raise
    abandon(resources)
    return pool


@contextmanager
def _waiting(place: DeltaGenerator, word: str) -> Iterator[None]:
    """Show in `place` what is being done, with a Stop button."""
    row = place.container(key="waiting", horizontal=True, vertical_alignment="center", gap="small")
    try:
        with row:
            st.button(
                "Stop",
                key="stop-search",
                icon=":material/stop:",
                on_click=_stop,
                help="Cancel. The previous result stays.",
            )
            with st.spinner(word, show_time=True):
                yield
    except RagfilterError:
        # Not earlier: the spinner still writes into the row as it ends, and a browser that no
        # longer has the row shows an empty page.
        place.empty()
        raise
    place.empty()


def _stop() -> None:
    st.session_state.pending = False
    abandon(open_resources())


def _question(pending: bool | str) -> str:
    """The question to ask: the one submitted last or, after an edit, the current question."""
    before = state.asked()
    if pending == "again" and before is not None:
        return before.query
    return str(st.session_state.query).strip()


def _record(asked: state.AskedQuestion, resources: Resources) -> None:
    """Add the question to the collection's history, for evaluations. A failure is only logged."""
    try:
        resources.bench.labels.remember(asked.collection, asked.query)
    except RagfilterError as error:
        log.warning("the question is not kept: %s", error)


def _remember(asked: state.AskedQuestion) -> None:
    before = state.asked()
    if before is None or (before.query, before.collection) != (asked.query, asked.collection):
        st.session_state.zoom = None
        if st.session_state.panel == "Chunk":
            st.session_state.panel = "Answer"
        st.session_state.chunk = None
    st.session_state.asked = asked
    st.session_state.pending = False
