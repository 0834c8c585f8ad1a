"""The collections that can be asked, as the session knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragfilter.errors import StoreError
from ragfilter.indexing.queue import Queue
from ragfilter.model import User
from ragfilter.text import numbers
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources

if TYPE_CHECKING:
    from ragfilter.stores.chroma.store import CollectionInfo

SPACES = {"l2": "l2", "cosine": "cosine", "ip": "inner product"}


def known(resources: Resources, *, anew: bool = False) -> dict[str, CollectionInfo]:
    """The collections by name, as of the start of the session, the last `forget`, or the last job
    that moved in the queue; with `anew`, as the store has them now. While it cannot be reached,
    they are those it had last."""
    queue = _queue_mark(resources)
    session = state.session()
    held = session.collections
    if held is None or anew or held[0] != queue:
        try:
            held = queue, {info.name: info for info in resources.bench.collections()}
        except StoreError:
            if held is None:
                raise
        state.session().collections = held
    infos = held[1]
    if session.collection not in infos:
        if session.collection:
            session.ignored.append(f"There is no collection {session.collection!r}.")
        session.collection = "demo" if "demo" in infos else next(iter(infos), "")
    return infos


def forget() -> None:
    """Read the collections again on the next run, because one was changed."""
    state.session().collections = None


def _queue_mark(resources: Resources) -> int:
    """Changes whenever a job is added, moves on or ends. Asks no store."""
    return Queue(resources.bench.workspace.path).folder.stat().st_mtime_ns


def label(info: CollectionInfo, user: User) -> str:
    """``demo · 431 chunks · l2``; without the number for a user from whom some may be hidden."""
    count = f" · {numbers.chunks(info.count)}" if user.unrestricted else ""
    note = "" if info.complete else " · incomplete"
    return f"{info.name}{count} · {SPACES[info.space]}{note}"
