"""The collections of the workspace: what they contain, and the actions on one of them."""

from __future__ import annotations

from functools import partial

import streamlit as st

from ragfilter.indexing.order import Order
from ragfilter.indexing.overview import Facts, overview
from ragfilter.indexing.queue import Queue
from ragfilter.model import User
from ragfilter.stores import manage
from ragfilter.stores.export import export
from ragfilter.ui.collections import theirs
from ragfilter.ui.kit import problems
from ragfilter.ui.look import elements
from ragfilter.ui.session import state, visit
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import Visit

STATES = {True: "complete", False: "incomplete"}


def draw(visit: Visit, user: User) -> None:
    """Draw the table of collections, and the actions for one of them. Raises StoreError."""
    elements.heading("Collections")
    if not visit.collections:
        elements.empty(
            "No collection yet.", "Add files on the left, or build a sample on the Inspect page."
        )
        theirs.elsewhere(visit.resources)
        return
    every = overview(visit.resources.bench, user)
    _table(every)
    _one(every, visit, user)
    theirs.elsewhere(visit.resources)


@st.fragment
@problems.shown()
def _one(every: tuple[Facts, ...], visit: Visit, user: User) -> None:
    """Draw the choice of a collection, and the actions for it."""
    names = [facts.info.name for facts in every]
    if st.session_state.get("manage-name") not in names:
        # Set as state, because a box that is already on the page ignores a new default.
        chosen = state.session().collection
        st.session_state["manage-name"] = chosen if chosen in names else names[0]
    name = st.selectbox(
        "Manage", names, key="manage-name",
        help="The collection that the buttons below act on.",
    )  # fmt: skip
    facts = every[names.index(name)]
    with st.container(key="manage", horizontal=True, gap="small"):
        _actions(facts, visit.resources, user)
    problems.incomplete(facts.info.incomplete)
    if facts.info.incomplete and facts.info.ours:
        _offer_rebuild(name, Queue(visit.resources.bench.workspace.path))
    if not facts.info.ours:
        theirs.opened(facts, visit.resources)


def _table(every: tuple[Facts, ...]) -> None:
    columns: dict[str, list[object]] = {
        "collection": [facts.info.name for facts in every],
        "chunks": [facts.chunks for facts in every],
        "rules": [facts.rules for facts in every],
        "labels": [facts.labels for facts in every],
        "embedding model": [facts.model or "unknown" for facts in every],
        "space": [visit.SPACES[facts.info.space] for facts in every],
        "last change": [f"{facts.changed:%Y-%m-%d %H:%M}" if facts.changed else "unknown"
                        for facts in every],
        "state": [STATES[facts.info.complete] if facts.info.ours else "not made by ragfilter"
                  for facts in every],
    }  # fmt: skip
    st.dataframe(columns, hide_index=True, key="collections-table")


def _actions(facts: Facts, resources: Resources, user: User) -> None:
    info = facts.info
    workspace = resources.bench.workspace
    left_out = (
        "" if user.unrestricted
        else " Chunks that the user chosen on Inspect may not see are left out."
    )  # fmt: skip
    if st.button(
        "Ask a question", key="manage-ask", icon=":material/search:", disabled=not info.count,
        help="Opens the collection on the Inspect page.",
    ):  # fmt: skip
        state.session().collection = info.name
        st.switch_page("pages/inspect.py")
    st.download_button(
        "Export", partial(_lines, resources, info.name, user), f"{info.name}.jsonl",
        "application/jsonl", key="export", on_click="ignore", icon=":material/download:",
        disabled=not (info.count and info.complete),
        help=f"JSONL that can be re-indexed, with rule edits but without labels.{left_out}",
    )  # fmt: skip
    # The keys name the collection, so that a popover does not stay open for the next one.
    with st.popover(
        "Rename", key=f"rename-box-{info.name}", disabled=not info.ours,
        help="Give it another name.",
    ):  # fmt: skip
        new = st.text_input(
            "New name",
            key=f"rename-{info.name}",
            help="Rule edits and labels move with it. Settings tuned on it still name the old one.",
        ).strip()
        st.button(
            "Rename", key="rename", disabled=not new or new == info.name, on_click=_do,
            args=(partial(manage.rename, workspace, info.name, new), info.name, new),
            help="Existing links to this collection will stop working.",
        )  # fmt: skip
    with st.popover(
        "Delete", key=f"delete-box-{info.name}", disabled=not info.ours,
        help="Delete it permanently.",
    ):  # fmt: skip
        typed = st.text_input(
            "Type its name to delete it", key=f"delete-{info.name}",
            help="This deletes its chunks, rule edits and labels. To keep them, export the chunks "
            f"first, and the labels with `ragfilter labels export`.{left_out}",
        ).strip()  # fmt: skip
        st.button(
            "Delete", key="delete", type="primary", disabled=typed != info.name, on_click=_do,
            args=(partial(manage.delete, workspace, info.name), info.name, ""),
            help="Cannot be undone.",
        )  # fmt: skip


def _offer_rebuild(name: str, queue: Queue) -> None:
    under_way = any(job.standing.open and job.order.collection == name for job in queue.jobs())
    st.button(
        "Rebuild", key="rebuild", icon=":material/build:", disabled=under_way, on_click=_rebuild,
        args=(name, queue),
        help="Restores the collection from the workspace's copy. Nothing is re-embedded.",
    )  # fmt: skip


@state.then_page
@state.tell_errors()
def _rebuild(name: str, queue: Queue) -> None:
    queue.put(Order(name))


def _lines(resources: Resources, name: str, user: User) -> str:
    bench = resources.bench
    return "".join(export(bench.workspace, bench.stores.of(name).collection(name), user))


@state.then_page
@state.tell_errors()
def _do(change: partial[None], name: str, after: str) -> None:
    """Rename or delete a collection, then select what replaces it."""
    change()
    if state.session().collection == name:
        state.session().collection = after
    st.session_state["manage-name"] = after
