"""The session's question: when it is asked, and how its pool is gathered and completed.

The store is only asked when something is submitted (a question, a collection, an edit, a new
session), never because a setting changed. A model is only asked when a button is pressed: once per
press and in the background. If a slider moves meanwhile, the next run waits for the same call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.engine.complete import complete, forget_failures
from ragfilter.engine.replay import replay
from ragfilter.errors import RagfilterError
from ragfilter.model import PendingKind, Pool
from ragfilter.settings.schema import Settings
from ragfilter.ui.session import link, pools, state
from ragfilter.ui.session.jobs import Job, Stoppable
from ragfilter.ui.session.resources import Resources, open_resources
from ragfilter.ui.session.state import ModelRequest, Session

log = logging.getLogger(__name__)


def request(kind: PendingKind, again: bool) -> None:
    """Request what a need lacks. For the judge, also open its panel."""
    state.session().request = ModelRequest(kind, again)
    if kind == "judge":
        state.session().panel = "Judge"


def abandon(resources: Resources) -> None:
    """Stop the call that a button has requested, if it is in progress."""
    session = state.session()
    resources.jobs.stop(session.request)
    session.request = None


def pool(settings: Settings, resources: Resources) -> Pool | None:
    """The pool of the current question, None if there is none. Raises RagfilterError."""
    session, user = state.session(), state.user()
    # Always present: if it came and went, the browser would redraw everything below it.
    place = st.empty()
    question = _question(session)
    if session.pending and question:
        abandon(resources)
        with _waiting(place, "Searching …"):
            # Loaded first, so that loading does not count as search time.
            resources.bench.embedder_of(session.collection).prepare()
            asked = pools.put(question, session.collection, settings, user, resources)
            pool = pools.pool_of(asked, settings, resources)
            # A link says whether it was shared before scores were fetched.
            scored, session.unscored = not session.unscored, False
            replay = session.replays.of
            pool = pools.settle(asked, pool, settings, user, resources, score=scored, replay=replay)
        _remember(asked, session)
        _record(asked, resources)
        link.restore_view()
        return pool
    session.pending = False
    if session.asked is None:
        return None
    pool = pools.pool_of(session.asked, settings, resources)
    if session.settle:
        session.settle = False
        with _waiting(place, "Scoring …"):
            pool = pools.settle(session.asked, pool, settings, user, resources)
    if session.request is None:
        return pool
    return _fulfil(session.request, pool, session.asked, settings, resources, place)


def follow(collection: str, before: str, resources: Resources) -> None:
    """Update the current question after an edit of rules in `collection`, which had the version
    `before`. The question is asked again only if that needs a search. Raises RagfilterError."""
    session, settings, user = state.session(), state.settings(), state.user()
    if session.asked is None:
        return
    now = None
    if session.asked.collection == collection and not session.pending:
        now = pools.follow(session.asked, before, settings, user, resources)
    if now is None:
        state.renew()
        return
    # A call in progress started with the old rules.
    abandon(resources)
    session.asked = now
    pool = pools.pool_of(now, settings, resources)
    session.settle = bool(session.replays.of(pool, settings, user).needs)


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
    state.session().pending = False
    abandon(open_resources())


def _question(session: Session) -> str:
    """The question to ask: the one submitted last or, after an edit, the current question."""
    if session.pending == "again" and session.asked is not None:
        return session.asked.query
    return session.query.strip()


def _record(asked: state.AskedQuestion, resources: Resources) -> None:
    """Add the question to the collection's history, for evaluations. A failure is only logged."""
    try:
        resources.bench.labels.remember(asked.collection, asked.query)
    except RagfilterError as error:
        log.warning("the question is not kept: %s", error)


def _remember(asked: state.AskedQuestion, session: Session) -> None:
    before = session.asked
    if before is None or (before.query, before.collection) != (asked.query, asked.collection):
        session.zoom = session.chunk = None
        if session.panel == "Chunk":
            session.panel = "Answer"
    session.asked = asked
    session.pending = False
