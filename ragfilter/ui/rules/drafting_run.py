"""Drafts rules for a selection in the background; a run can be started, paused and continued.

Source: docs/design.md#drafting. Each draft is saved in the workspace as it is made, so neither a
closed tab nor a killed server loses one. A chunk is read again before it is sent, and sent only if
the *user* may see it, even if an operator is looking: hidden chunks are sent to no LLM.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress

import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.errors import RagfilterError, StoreError
from ragfilter.model import Chunk, User
from ragfilter.protocols import Usage
from ragfilter.rules.draft import Draft
from ragfilter.rules.drafting import drafts, total
from ragfilter.rules.templates import Template
from ragfilter.text import numbers
from ragfilter.ui.session import background, state
from ragfilter.ui.session.background import Job, Stoppable
from ragfilter.ui.session.resources import Resources, open_resources

TROUBLE = "drafts-trouble"
Drafting = Job[list[Draft]]
_STARTING = threading.Lock()
"""Held from the look for a run until one has begun, so that two sessions do not begin two."""


def of(collection: str, resources: Resources) -> Drafting | None:
    """The last run over this collection since the server started, None if there is none."""
    found = resources.drafting.get(collection)
    return None if found is None else found[1]


def is_shown(collection: str, user: User, resources: Resources) -> bool:
    """Whether `user` may know how far the last run is. It tells how many chunks its starter drafts,
    of which others may not know."""
    found = resources.drafting.get(collection)
    return found is None or user.unrestricted or user == found[0]


def sender() -> User:
    """The user whose clearance decides whether a chunk may be sent."""
    return state.user()


def begin(collection: str, chunk_ids: Sequence[str]) -> None:
    """Draft rules for these chunks, except those that already have a draft. If a run is in
    progress, they wait."""
    if _try(lambda resources: resources.bench.drafts.want(collection, chunk_ids)):
        go_on(collection, frozenset(chunk_ids))


def go_on(collection: str, among: Container[str] | None = None) -> None:
    """Draft rules for the chunks still waiting, or only for those `among` them."""
    user = sender()
    _try(lambda resources: _start(collection, user, resources, among))


def pause(collection: str) -> None:
    """Stop after the last saved draft; the one in progress will be made again later."""
    running = of(collection, open_resources())
    if running is not None:
        running.stop.set()


def forget(collection: str, chunk_ids: Sequence[str]) -> None:
    """Remove drafts, and remove their chunks from the queue."""
    _try(lambda resources: resources.bench.drafts.forget(collection, chunk_ids))


def try_template(
    collection: str, chunks: Sequence[Chunk], template: Template, resources: Resources
) -> Drafting | None:
    """Drafts for these chunks by a template that may not be saved yet; None without an LLM."""
    user = sender()
    seen = [chunk for chunk in chunks if user.sees(chunk)]
    return _begin(collection, seen, len(seen), (template,), resources, keep=False)


def _start(collection: str, user: User, resources: Resources, among: Container[str] | None) -> None:
    with _STARTING:
        running = of(collection, resources)
        if running is not None and not running.done:
            return
        book, known = resources.bench.drafts, resources.bench.collection(collection).entries()
        # A chunk queued by an operator counts only for users who may see it.
        queued = (i for i in book.waiting(collection) if among is None or i in among)
        waiting = [i for i in queued if i in known and user.sees(known[i])]
        chunks = _seen(collection, waiting, user, resources)
        templates = resources.bench.templates()
        begun = _begin(collection, chunks, len(waiting), templates, resources, keep=True)
        if begun is not None:
            resources.drafting.put(collection, (user, begun))


def _begin(
    collection: str,
    chunks: Iterable[Chunk],
    count: int,
    templates: Sequence[Template],
    resources: Resources,
    *,
    keep: bool,
) -> Drafting | None:
    """Start drafting in the background; None without an LLM. With `keep`, each draft is stored."""
    chat, timeout_s = resources.bench.chat, resources.deployment.answer_timeout_s
    book = resources.bench.drafts
    if chat is None:
        return None

    def work(job: Drafting) -> list[Draft]:
        made: list[Draft] = []
        job.tell(0, count)
        for draft in drafts(
            chunks, Stoppable(chat, job.stop), timeout_s=timeout_s, templates=templates,
            wait=job.stop.wait,
        ):  # fmt: skip
            interrupted = job.stop.is_set() and draft.rule is None
            if keep and not interrupted:
                book.keep(collection, draft)
            else:
                # A full disk must not lose the draft.
                with suppress(StoreError):
                    book.count(collection, draft)
            if interrupted:
                break
            made.append(draft)
            if not job.tell(len(made), count, tokens(total(made, 0).usage, resources.prices)):
                break
        return made

    return background.start(work)


def tokens(usage: Usage, prices: Prices | None) -> str:
    """``about 5,000 + 700 tokens, cost 0.0123``."""
    about, cost = "about " if usage.estimated else "", ""
    if prices is not None:
        cost = f", cost {numbers.money(prices.of(usage), prices.currency)}"
    return f"{about}{numbers.exchanged(usage.prompt_tokens, usage.completion_tokens)}{cost}"


def _seen(collection: str, ids: Sequence[str], user: User, resources: Resources) -> Iterator[Chunk]:
    """The chunks as they are when their turn comes, without those that are deleted or hidden."""
    store = resources.bench.collection(collection)
    for chunk_id in ids:
        chunk = store.chunks([chunk_id]).get(chunk_id)
        if chunk is not None and user.sees(chunk):
            yield chunk


def _try(what: Callable[[Resources], None]) -> bool:
    """Whether it succeeded."""
    st.session_state.pop(TROUBLE, None)
    try:
        what(open_resources())
    except RagfilterError as error:
        st.session_state[TROUBLE] = str(error)
        return False
    return True
