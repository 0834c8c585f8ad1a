"""The session's question: when it is asked, and how its pool is gathered and completed.

Only a submission (a question, a collection, a profile, an edit, Gather again, a new session) asks the store. A slider
or switch does not: a pool is cached for all sessions, and they replay it. Local rerank scores and the LLM's earlier
answers are fetched with the question. If later settings lack something, it stays a `Need`, which the page offers as a
button. Each press asks a model once, in the background. If a slider moves during the call, the next run waits for the
same call. Only sentence contributions are computed in every run, which may embed some."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.engine.gather import gather, wanted_count
from ragfilter.engine.pipeline import PoolCompleter, Replay, replay_completed
from ragfilter.engine.pool import count_clean, join_pools, renew_rules, without_failures
from ragfilter.engine.replay import replay
from ragfilter.errors import RagfilterError, StoreError
from ragfilter.layers.references import find_chunks
from ragfilter.model import NeedKind, Pool, PoolResult, User
from ragfilter.settings.schema import Settings
from ragfilter.stores.base import Subset
from ragfilter.ui.jobs import Job, Stoppable
from ragfilter.ui.look import elements
from ragfilter.ui.resources import Resources, open_resources
from ragfilter.ui.session import link, state
from ragfilter.ui.session.state import AskedQuestion, ModelRequest, PoolReach

log = logging.getLogger(__name__)


def request(kind: NeedKind, again: bool) -> None:
    """Request the missing data of this kind. For the judge, also open its panel."""
    state.session().request = ModelRequest(kind, again)
    if kind == "judge":
        state.open_panel("Judge")


def abandon(resources: Resources) -> None:
    """Stop the call that a button requested, if it is in progress."""
    session = state.session()
    resources.jobs.stop(session.request)
    session.request = None


def pool_for_this_run(settings: Settings, resources: Resources) -> Pool | None:
    """Ask a pending question, or carry out what a button requested. Returns the pool of the current
    question, None if there is none. Raises RagfilterError."""
    session = state.session()
    # Always present, because the browser would otherwise redraw everything below it.
    slot = st.empty()
    again = session.pending == "current" and session.asked is not None
    question = session.asked.query if again and session.asked else session.query.strip()
    if session.pending and question:
        return _gather_question(question, settings, resources, slot)
    session.pending = ""
    if session.asked is None:
        return None
    return _current_pool(session.asked, settings, resources, slot)


def _gather_question(question: str, settings: Settings, resources: Resources, slot: DeltaGenerator) -> Pool:
    """Ask `question`, record it in the collection's history, and close another one's chunk."""
    session, user = state.session(), state.user()
    abandon(resources)
    with _waiting(slot, "Searching …"):
        elements.draw('<i class="rf-searching"></i>')
        # Loaded first, so that loading does not count as search time.
        resources.bench.recorded_embedder(session.collection).prepare()
        asked = asked_question(question, session.collection, settings, user, resources, use_trace=session.use_trace)
        pool = pool_of(asked, settings, resources)
        # A link says whether it was shared before scores were fetched.
        score, session.unscored = not session.unscored, False
        pool = complete_pool(asked, pool, settings, user, resources, score=score, replayer=session.replays.of)
    if session.pending == "question":
        # Recorded in the collection's history, for evaluations.
        try:
            resources.bench.labels.remember(asked.collection, asked.query)
        except RagfilterError as error:
            log.warning("the question is not kept: %s", error)
    known = session.asked
    if known is None or (known.query, known.collection) != (asked.query, asked.collection):
        session.chunk = None
        if session.panel == "Chunk":
            session.panel = "Answer"
    session.example = session.pending == "example" or (session.example and session.pending == "current")
    session.asked, session.pending = asked, ""
    link.open_linked_parts()
    return pool


def _current_pool(asked: AskedQuestion, settings: Settings, resources: Resources, slot: DeltaGenerator) -> Pool:
    """The pool of the current question, usually from the cache, with any data that this run adds."""
    session, user = state.session(), state.user()
    pool = pool_of(asked, settings, resources)
    if session.complete_next:
        session.complete_next = False
        with _waiting(slot, "Scoring …"):
            pool = complete_pool(asked, pool, settings, user, resources)
    elif settings.prune.enabled:
        # Sentence contributions of the chunks kept now. As for quotes, only sentences without stored vectors are
        # embedded.
        result = session.replays.of(pool, settings, user)
        if needs := [need for need in result.needs if need.kind == "prune"]:
            completer = PoolCompleter(settings, resources.backends(asked.collection), user)
            pool = keep_pool(asked, completer.complete(pool, needs), resources)
    return _fulfil(pool, asked, settings, resources, slot)


def follow_others(resources: Resources, collections: Container[str]) -> None:
    """Follow others' changes to the question's collection, if it is in `collections`. Tells a user who sees them."""
    asked = state.session().asked
    if asked is None or state.session().pending or asked.collection not in collections:
        return
    if resources.bench.stores.of(asked.collection).outdated(asked.version) and update_after_edits(resources):
        st.toast("Rules or chunks changed elsewhere; the results are refreshed.")


def update_after_edits(resources: Resources) -> bool:
    """Update the current question after rules were edited. It is asked again only if that needs a
    search. Returns whether its user can see a difference."""
    try:
        return _update_after_edits(resources)
    except RagfilterError:
        # Asking the question again shows the error.
        state.ask_again()
        return False


def _update_after_edits(resources: Resources) -> bool:
    session, settings = state.session(), state.settings()
    asked = session.asked
    if asked is None or session.pending:
        return False
    stored = resources.bench.collection(asked.collection).snapshot()
    current = replace(asked, version=stored.version)
    if current == asked:
        return False
    user, pool = asked.reach.user, resources.pools.get(asked)
    reach = replace(reach_of(settings, state.user()), only=asked.reach.only)
    renewed = None
    if pool and stored.content and (stored.content, reach) == (asked.content, asked.reach):
        chunks = find_chunks(stored, [chunk.id for chunk in pool.chunks])
        renewed = resources.pools.get(current) or renew_rules(pool, chunks, settings, user, reach.wanted)
    if pool is None or renewed is None:
        state.ask_again()
        # Others are not told, because the changed chunks may be hidden from them.
        return user.unrestricted
    session.asked, renewed = current, keep_pool(current, renewed, resources)
    if renewed is pool:
        return False
    # A call in progress started with the old rules.
    abandon(resources)
    session.complete_next = bool(session.replays.of(renewed, settings, state.user()).needs)
    rules = {hit.id: hit.chunk.rule for hit in pool.hits if user.sees(hit.chunk)}
    return any(rules.get(hit.id, hit.chunk.rule) != hit.chunk.rule for hit in renewed.hits)


def _fulfil(pool: Pool, asked: AskedQuestion, settings: Settings, resources: Resources, slot: DeltaGenerator) -> Pool:
    """The pool, completed with the data that a button requested, if one did."""
    pressed = state.session().request
    if pressed is None:
        return pool
    if pressed.again:
        pool = without_failures(pool, pressed.kind)
    user, backends = state.user(), resources.backends(asked.collection)
    needs = [need for need in replay(pool, settings, user).needs if need.kind == pressed.kind]

    def work(job: Job[Pool]) -> Pool:
        chat = backends.chat and Stoppable(backends.chat, job.stop)
        return PoolCompleter(settings, replace(backends, chat=chat), user).complete(pool, needs)

    if not needs:
        abandon(resources)
        return pool
    with _waiting(slot, "Asking the LLM …" if pressed.kind == "judge" else "Scoring …"):
        job = resources.jobs.start(user, pressed, work)
        job.wait_interruptibly()
    abandon(resources)
    return keep_pool(asked, job.value(), resources)


@contextmanager
def _waiting(slot: DeltaGenerator, word: str) -> Iterator[None]:
    """Show the activity `word` in `slot`, with a Stop button."""
    row = slot.container(key="waiting", horizontal=True, vertical_alignment="center", gap="small")
    try:
        with row:
            elements.button("Stop", "stop-search", _stop, icon="stop")
            with st.spinner(word, show_time=True):
                yield
    except RagfilterError:
        # Only now, because the spinner still writes into the row as it ends. If the browser no
        # longer had the row, it would show an empty page.
        slot.empty()
        raise
    slot.empty()


def _stop() -> None:
    state.session().pending = ""
    abandon(open_resources())


def reach_of(settings: Settings, user: User) -> PoolReach:
    """How far a question asked now would reach."""
    how = settings.retrieval
    return PoolReach(how.pool_size, wanted_count(settings), user, how.source_pattern, how.lexical)


def asked_question(
    query: str, collection: str, settings: Settings, user: User, resources: Resources, *, use_trace: bool = False
) -> AskedQuestion:
    """A question asked now of the collection's current version. With `use_trace`, it is asked of
    the chunks that a trace recorded and the user can see, if any. Raises StoreError."""
    stored = resources.bench.collection(collection).snapshot()
    trace_ids: tuple[str, ...] = ()
    # Questions are answered without the database, too.
    with suppress(StoreError):
        ids = resources.bench.labels.recorded(collection, query)
        trace_ids = tuple(i for i, chunk in stored.chunks(ids).items() if user.sees(chunk))
    reach = replace(reach_of(settings, user), only=trace_ids if use_trace else ())
    return AskedQuestion(query, collection, stored.version, reach, stored.content, trace_ids)


def pool_of(asked: AskedQuestion, settings: Settings, resources: Resources) -> Pool:
    """The pool of a question, from the cache or gathered. Raises RagfilterError."""
    pool = resources.pools.get(asked)
    if pool is None:
        reach, names = asked.reach, ("pool_size", "source_pattern", "lexical")
        wide = settings.with_values({f"retrieval.{name}": getattr(reach, name) for name in names})
        backends = resources.backends(asked.collection)
        if reach.only:
            backends = replace(backends, collection=Subset(backends.collection, reach.only))
        pool = gather(asked.query, wide, backends, reach.user)
        pool = keep_pool(asked, pool, resources)
    return pool


def keep_pool(asked: AskedQuestion, pool: Pool, resources: Resources) -> Pool:
    """Cache a pool, joined with data that models have added to it for other sessions."""
    pools = resources.pools
    with pools.lock:
        before = pools.get(asked)
        joined = pool if before is None else join_pools(pool, before)
        # Replays are remembered for the pool itself, not for an equal one.
        return pools.put(asked, pool if joined == pool else joined)


def complete_pool(
    asked: AskedQuestion,
    pool: Pool,
    settings: Settings,
    user: User,
    resources: Resources,
    *,
    score: bool = True,
    replayer: Replay = replay,
) -> Pool:
    """The pool with the rerank scores that the settings need (unless `score` is False) and the LLM's cached replies to
    the same prompt. Never calls the LLM. Retries a failed reranking, because the user asked again. `replayer` may cache
    its steps for the page, which replays next."""
    pool = without_failures(pool, "rerank", "prune")
    backends = resources.backends(asked.collection)
    kinds: tuple[NeedKind, ...] = ("rerank", "prune") if score else ("prune",)
    result = replay_completed(pool, settings, backends, user, kinds=kinds, replayer=replayer)
    return keep_pool(asked, PoolCompleter(settings, backends, user).look_up(result.pool, result.needs), resources)


def falls_short(asked: AskedQuestion, result: PoolResult, settings: Settings) -> bool:
    """Whether asking again would add to the pool: it was limited to other files, words were not
    searched, a larger one is set now, or too few of its hits are clean for the current settings."""
    pool, reach, before = result.pool, reach_of(settings, result.user), asked.reach
    if reach.lexical and pool.lexical_user != result.user:
        return True
    if pool.source_pattern not in ("", reach.source_pattern):
        return True
    if pool.exhaustive:
        return False
    if reach.pool_size > before.pool_size:
        return True
    changed = reach.wanted > before.wanted or (reach.user, reach.source_pattern) != (before.user, before.source_pattern)
    return changed and count_clean(pool, settings, result.user) < reach.wanted
