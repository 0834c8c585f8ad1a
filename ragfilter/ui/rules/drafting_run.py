"""Drafts of rules for a selection, made in the background: started, paused, continued.

Source: docs/design.md#drafting. The drafts are saved in the workspace as they are made, so neither
a closed tab nor a killed server loses one. A chunk is read again before it is sent, and sent only
if the *user* may see it, even if an operator looks: hidden chunks are sent to no LLM.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.layers.clearance import viewer
from ragfilter.model import Chunk, User
from ragfilter.rules.draft import Draft
from ragfilter.rules.drafting import drafts
from ragfilter.rules.templates import Template
from ragfilter.ui.session import background, state
from ragfilter.ui.session.background import Job, Stoppable
from ragfilter.ui.session.resources import Resources, open_resources

TROUBLE = "drafts-trouble"


@dataclass(frozen=True, slots=True)
class Run:
    """A run of this process: `made` grows while it is under way."""

    job: Job[None]
    total: int
    made: list[Draft] = field(default_factory=list)


def of(collection: str, resources: Resources) -> Run | None:
    """The last run over this collection since the server started."""
    return resources.drafting.get(collection)


def sender() -> User:
    """Who is asked whether a chunk may be sent."""
    return viewer(state.user(), state.settings())


def begin(collection: str, chunk_ids: Sequence[str]) -> None:
    """Draft rules for these chunks; those drafted already are left out."""
    _try(lambda resources: resources.bench.drafts.want(collection, chunk_ids))
    go_on(collection)


def go_on(collection: str) -> None:
    """Draft what still waits."""
    user = sender()
    _try(lambda resources: _start(collection, user, resources))


def pause(collection: str) -> None:
    """Stop after what is kept; the draft under way is made again later."""
    running = of(collection, open_resources())
    if running is not None:
        running.job.stop.set()


def forget(collection: str, chunk_ids: Sequence[str]) -> None:
    """Forget drafts, and that chunks wait for one."""
    _try(lambda resources: resources.bench.drafts.forget(collection, chunk_ids))


def try_template(chunks: Sequence[Chunk], template: Template, resources: Resources) -> Run | None:
    """Drafts for these chunks by a template that may not be kept yet; None without an LLM."""
    chat, user = resources.bench.chat, sender()
    if chat is None:
        return None
    timeout_s = resources.deployment.answer_timeout_s
    made: list[Draft] = []
    seen = [chunk for chunk in chunks if user.sees(chunk)]

    def work(stop: threading.Event) -> None:
        found = drafts(
            seen, Stoppable(chat, stop), timeout_s=timeout_s, templates=(template,), wait=stop.wait
        )
        for draft in found:
            made.append(draft)

    return Run(background.start(work), len(seen), made)


def _start(collection: str, user: User, resources: Resources) -> None:
    running, chat = of(collection, resources), resources.bench.chat
    if chat is None or (running is not None and not running.job.done):
        return
    book, templates = resources.bench.drafts, resources.bench.templates()
    timeout_s = resources.deployment.answer_timeout_s
    known = resources.bench.collection(collection).entries()
    # What an operator queued counts for those alone who may see it.
    waiting = [i for i in book.waiting(collection) if i in known and user.sees(known[i])]
    made: list[Draft] = []

    def work(stop: threading.Event) -> None:
        found = drafts(
            _seen(collection, waiting, user, resources),
            Stoppable(chat, stop),
            timeout_s=timeout_s,
            templates=templates,
            wait=stop.wait,
        )
        for draft in found:
            if stop.is_set() and draft.rule is None:
                return
            book.keep(collection, draft)
            made.append(draft)
            if stop.is_set():
                return

    resources.drafting.put(collection, Run(background.start(work), len(waiting), made))


def _seen(collection: str, ids: Sequence[str], user: User, resources: Resources) -> Iterator[Chunk]:
    """The chunks as they are when their turn comes, those that are gone or hidden left out."""
    store = resources.bench.collection(collection)
    for chunk_id in ids:
        chunk = store.chunks([chunk_id]).get(chunk_id)
        if chunk is not None and user.sees(chunk):
            yield chunk


def _try(what: Callable[[Resources], None]) -> None:
    st.session_state.pop(TROUBLE, None)
    try:
        what(open_resources())
    except RagfilterError as error:
        st.session_state[TROUBLE] = str(error)
