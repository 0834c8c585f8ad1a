"""Drafts rules for a selection in the background, one run at a time for each collection.

Source: docs/design.md#drafting. Each draft is saved in the workspace as it is made, so neither a
closed tab nor a killed server loses one. A chunk is read again before it is sent, and sent only if
the *user* may see it, even if an operator is looking: hidden chunks are sent to no LLM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.errors import RagfilterError
from ragfilter.model import Chunk, User
from ragfilter.protocols import Usage
from ragfilter.rules.draft import Draft
from ragfilter.rules.drafting import drafts, total
from ragfilter.text import numbers
from ragfilter.ui.session import state
from ragfilter.ui.session.jobs import Job, Stoppable
from ragfilter.ui.session.resources import Resources, open_resources

TROUBLE = "drafts-trouble"
Drafting = Job[list[Draft]]


def of(collection: str, resources: Resources) -> Drafting | None:
    """The last run over this collection since the server started, None if there is none."""
    return resources.jobs.find(_key(collection))


def is_shown(collection: str, user: User, resources: Resources) -> bool:
    """Whether `user` may know how far the last run is. It tells how many chunks its starter drafts,
    of which others may not know."""
    run = of(collection, resources)
    return run is None or user.unrestricted or user == run.owner


def sender() -> User:
    """The user whose clearance decides whether a chunk may be sent."""
    return state.user()


def begin(collection: str, chunk_ids: Sequence[str]) -> None:
    """Draft rules for these chunks, unless a run over the collection is in progress."""
    user = sender()
    _try(lambda resources: _start(collection, chunk_ids, user, resources))


def stop(collection: str) -> None:
    """Stop after the last saved draft."""
    running = of(collection, open_resources())
    if running is not None:
        running.stop.set()


def forget(collection: str, chunk_ids: Sequence[str]) -> None:
    """Remove drafts."""
    _try(lambda resources: resources.bench.drafts.forget(collection, chunk_ids))


def _start(collection: str, ids: Sequence[str], user: User, resources: Resources) -> None:
    chat, templates = resources.bench.chat, resources.bench.templates()
    if chat is None:
        return

    def work(job: Drafting) -> list[Draft]:
        done: list[Draft] = []
        job.tell(0, len(ids))
        for draft in drafts(
            _readable(collection, ids, user, resources), Stoppable(chat, job.stop),
            timeout_s=resources.deployment.answer_timeout_s, templates=templates,
            wait=job.stop.wait,
        ):  # fmt: skip
            if job.stop.is_set() and draft.rule is None:
                break
            resources.bench.drafts.keep(collection, draft)
            done.append(draft)
            if not job.tell(len(done), len(ids), tokens(total(done, 0).usage, resources.prices)):
                break
        return done

    resources.jobs.start(user, _key(collection), work, again=True)


def _key(collection: str) -> tuple[str, str]:
    return "drafting", collection


def tokens(usage: Usage, prices: Prices | None) -> str:
    """``about 5,000 + 700 tokens, cost 0.0123``."""
    about, cost = "about " if usage.estimated else "", ""
    if prices is not None:
        cost = f", cost {numbers.money(prices.of(usage), prices.currency)}"
    return f"{about}{numbers.exchanged(usage.prompt_tokens, usage.completion_tokens)}{cost}"


def _readable(
    collection: str, ids: Sequence[str], user: User, resources: Resources
) -> Iterator[Chunk]:
    """The chunks as they are when their turn comes, without those that are deleted or hidden."""
    store = resources.bench.collection(collection)
    for chunk_id in ids:
        chunk = store.chunks([chunk_id]).get(chunk_id)
        if chunk is not None and user.sees(chunk):
            yield chunk


def _try(action: Callable[[Resources], None]) -> None:
    """Do it, and keep the error for the page."""
    st.session_state.pop(TROUBLE, None)
    try:
        action(open_resources())
    except RagfilterError as error:
        st.session_state[TROUBLE] = str(error)
