"""The Collections page: adding data, indexing jobs and existing collections."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import streamlit as st

from ragfilter.indexing.order import Order, Refusal
from ragfilter.indexing.queue import IndexJob, Queue, queue_of
from ragfilter.model import User
from ragfilter.settings.deployment import is_address
from ragfilter.stores import manage
from ragfilter.stores.base import Opening
from ragfilter.stores.manage import export
from ragfilter.stores.opening import embedder_hint, resolve_location
from ragfilter.text import numbers
from ragfilter.text.numbers import counted, time_left
from ragfilter.ui.collections import add
from ragfilter.ui.jobs import draw_progress
from ragfilter.ui.kit import guide, problems
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal, message, quiet
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import PageRun
from ragfilter.ui.session.state import MANAGED
from ragfilter.workbench import Facts, overview

if TYPE_CHECKING:
    from ragfilter.stores.postgres.foreign import TableStore

LOOK_S = 1.0


def draw(page_run: PageRun) -> None:
    """Draw the upload, the indexing jobs, and the existing collections."""
    left, right = st.container(key="halves").columns((1, 1.25), gap="large")
    with left:
        add.draw(page_run)
    with right, problems.show_errors(retry=True):
        queue = queue_of(page_run.resources.bench)
        active = _active(queue.jobs())
        # Refreshed automatically only while a job is active.
        st.fragment(_jobs, run_every=LOOK_S if active else None)(queue, active)
        _collections(page_run, state.listing_user())


def _active(jobs: Sequence[IndexJob]) -> frozenset[int]:
    return frozenset(job.id for job in jobs if job.status.open)


def _jobs(queue: Queue, active: frozenset[int]) -> None:
    """Draw the jobs. `active` has the jobs that were active when the page was drawn. If others are
    active now, a collection is new or has changed."""
    jobs, known = queue.jobs(), state.session().indexing
    known |= active
    # What was indexed earlier is in the table below, except for what was left out.
    listed = [j for j in reversed(jobs) if j.status.state != "done" or j.id in known or j.status.left_out]
    if listed:
        elements.heading("Indexing")
    for job in listed:
        with st.container(key=f"job-{job.id}", border=True, gap="small"):
            _job(job, queue)
            _left_out(job)
            if not job.status.open:
                _buttons(job, queue)
    if _active(jobs) != active:
        st.rerun()


def _job(job: IndexJob, queue: Queue) -> None:
    at, name = job.status, literal(job.order.collection)
    if at.open:
        left = time_left(at.seconds_left)
        so_far = f"{at.done:,} {at.phase}" if at.done else "loading the embedding model …"
        progress = f"{at.share:.0%} of {at.phase}" if at.total else so_far
        line = "is waiting" if at.state == "waiting" else f"{progress}{left and ', '}{left}"
        stop = partial(state.then_page(queue.stop), job.id)
        draw_progress(f"indexing-{job.id}", at.share, f"**{name}** {line}", stop, "Chunks embedded so far are kept.")
    elif at.state == "stopped":
        st.markdown(f"**{name}** is stopped. Chunks embedded so far are kept.")
    elif at.state == "failed":
        st.error(f"**{name}** was not indexed. {message(at.message)}  \n{message(at.remedy)}")
    else:
        report = at.result().report
        counts = [(getattr(report, word), word) for word in ("added", "changed", "unchanged")]
        listed = ", ".join(f"{number:,} {word}" for number, word in counts if number)
        st.success(
            f"**{name}** holds {numbers.chunk_count(report.total)}: {listed or 'restored'}, in "
            f"{report.seconds:,.1f} s{at.labels and f'; {at.labels}'}"
        )


def _left_out(job: IndexJob) -> None:
    at = job.status
    warnings = at.report.warnings if at.report else ()
    counts = [f"{at.left_out:,} left out" if at.left_out else "", counted(len(warnings), "warning") if warnings else ""]
    if not any(counts):
        return
    listed = [*at.refused, *map(Refusal, warnings)]
    with st.expander(", ".join(filter(None, counts)), expanded=not at.open):
        # As in the preview. A table would cut off both fault and remedy.
        lines = "\n".join(f"- {message(f'{each.message} {each.remedy}')}" for each in listed)
        st.container(key=f"left-out-{job.id}").markdown(lines)


def _buttons(job: IndexJob, queue: Queue) -> None:
    at = job.status
    with elements.row(align="top"):
        if at.state == "done":
            if elements.button("Ask a question", f"ask-{job.id}", icon="search", type="primary"):
                state.open_collection(job.order.collection)
                queue.remove(job.id)
                st.switch_page("pages/inspect.py")
        else:
            elements.button("Continue", f"go-on-{job.id}", state.then_page(queue.go_on), job.id, icon="play_arrow")
        elements.button("Dismiss", f"dismiss-{job.id}", state.then_page(queue.remove), job.id)


MODEL = (
    "The model that made the vectors: a sentence-transformers name or path, or openai:NAME. "
    "Another model returns meaningless results, even if its dimensions match."
)


def _collections(page_run: PageRun, user: User) -> None:
    elements.heading("Collections")
    # Not `page_run.collections`, which still has a collection that is being rebuilt.
    if every := overview(page_run.resources.bench, user):
        _table(every)
        _one(every, page_run, user)
    else:
        elements.empty("No collection yet.", "Add files on the left, or build a sample on the Inspect page.")
    _elsewhere(page_run.resources)
    if state.session().collection in guide.DEMOS:
        # Offer the other demo while one demo is open.
        for name, (_, about) in guide.DEMOS.items():
            if name not in page_run.collections or not page_run.collections[name].complete:
                elements.aside(about)
                guide.draw_build_button(name, queue_of(page_run.resources.bench), about)


@st.fragment
@problems.show_errors()
def _one(every: tuple[Facts, ...], page_run: PageRun, user: User) -> None:
    names = [facts.info.name for facts in every]
    if st.session_state.get(MANAGED) not in names:
        # Set as state, because a box already on the page ignores a new default.
        chosen = state.session().collection
        st.session_state[MANAGED] = chosen if chosen in names else names[0]
    name = st.selectbox("Manage", names, key=MANAGED)
    facts = every[names.index(name)]
    with elements.row("manage", "top"):
        _actions(facts, page_run.resources, user)
    problems.draw_incomplete(facts.info.incomplete)
    if facts.info.incomplete and facts.info.ours:
        queue = queue_of(page_run.resources.bench)
        busy = any(job.status.open and job.order.collection == name for job in queue.jobs())
        put, about = state.then_page(queue.put), "Restores the collection from the workspace's copy, without embedding."
        elements.button("Rebuild", "rebuild", put, Order(name), icon="build", disabled=busy, about=about)
    if not facts.info.ours:
        _foreign(facts, page_run.resources)


def _table(every: tuple[Facts, ...]) -> None:
    columns: dict[str, list[object]] = {
        "collection": [facts.info.name for facts in every],
        "chunks": [facts.chunks for facts in every],
        "rules": [facts.rules for facts in every],
        "own labels": [facts.labels for facts in every],
        "embedding model": [facts.model or "unknown" for facts in every],
        "last change": [f"{facts.changed:%Y-%m-%d %H:%M}" if facts.changed else "unknown" for facts in every],
        "state": [
            "opened" if not facts.info.ours else "complete" if facts.info.complete else "incomplete" for facts in every
        ],
    }
    widths = {"collection": st.column_config.TextColumn(width=130)}
    st.dataframe(columns, hide_index=True, key="collections-table", column_config=widths)


def _actions(facts: Facts, resources: Resources, user: User) -> None:
    info = facts.info
    workspace, store = resources.bench.workspace, resources.bench.stores.of(info.name)
    left_out = "" if user.unrestricted else " Chunks that this user cannot see are left out."
    about = (
        "After a change of model, chunking or corpus: tunes the settings again on this "
        "collection's labels, on the Tune page."
    )
    if elements.button("Recalibrate", "manage-recalibrate", icon="sync", disabled=not info.count, about=about):
        state.open_collection(info.name)
        state.open_recalibration()
    elements.download(
        "Export",
        "export",
        lambda: "".join(export(workspace, store.collection(info.name), user)),
        f"{info.name}.jsonl",
        f"JSONL that can be re-indexed, with rule edits but without labels.{left_out}",
        disabled=not (info.count and info.complete),
    )
    # The keys name the collection, so that its popovers close when another one is chosen.
    with st.popover("Rename", key=f"rename-box-{info.name}", disabled=not info.ours):
        about = "Rule edits and labels move with it. Settings tuned on it still name the old one."
        new = st.text_input("New name", key=f"rename-{info.name}", help=about).strip()
        rename, same = partial(manage.rename, workspace, info.name, new), new in ("", info.name)
        about = "Existing links to this collection will stop working."
        elements.button("Rename", "rename", _do, rename, info.name, new, disabled=same, about=about)
    with st.popover("Delete", key=f"delete-box-{info.name}", disabled=not info.ours):
        about = (
            "This deletes its chunks, rule edits and labels. To keep them, export the chunks first, and the labels "
            f"with `ragfilter labels export`.{left_out}"
        )
        typed = st.text_input("Type its name to delete it", key=f"delete-{info.name}", help=about).strip()
        delete = partial(manage.delete, workspace, info.name)
        elements.button("Delete", "delete", _do, delete, info.name, "", type="primary", disabled=typed != info.name)


@state.then_page
def _do(change: partial[None], name: str, after: str) -> None:
    """Rename or delete a collection, then select what replaces it."""
    change()
    if state.session().collection == name:
        state.open_collection(after)
    st.session_state[MANAGED] = after


def _foreign(facts: Facts, resources: Resources) -> None:
    name = facts.info.name
    opening = resources.bench.stores.opening(name)
    st.markdown(quiet("Not made by ragfilter: queried and exported as it is."))
    _form(name, opening, resources, key="theirs")
    opened, checks = state.session().foreign_checks
    for title, good in (("Works", True), ("Needs more", False)):
        if listed := [f"- {literal(check.words)}" for check in checks if opened == name and check.good == good]:
            st.markdown(f"**{title}**\n\n" + "\n".join(listed))
    if opening.folder:
        elements.button("Close", "theirs-close", _close, name, resources, about="The collection itself is unchanged.")


@st.fragment
@problems.show_errors()
def _elsewhere(resources: Resources) -> None:
    with st.expander("Open an existing collection or table", key="elsewhere"):
        folder = st.text_input(
            "Chroma folder or server, or PostgreSQL database",
            key="elsewhere-folder",
            placeholder="/path/to/chroma, http://host:8000 or postgresql://user@host/database",
            help="A folder on the computer that runs the app; close other programs that use it. "
            "Or the URL of a server without a password. For one with a password, start the app "
            "with RAGFILTER_CHROMA_URL. Or the address of a database with pgvector, whose "
            "password is in ~/.pgpass; postgresql:// means the workspace's own.",
        ).strip()
        if not folder:
            return
        folder = resolve_location(folder)
        names = sorted(resources.bench.stores.at(folder).names())
        if not names:
            st.info("There is no collection there.")
            return
        name = st.selectbox("Collection there", names, key="elsewhere-name")
        _form(name, Opening(folder=folder), resources, key="elsewhere")


@problems.show_errors()
def _form(name: str, opening: Opening, resources: Resources, *, key: str) -> None:
    hint = opening.embedder or embedder_hint(resources.bench.stores.at(opening.folder).collection(name))
    example = f"for example {resources.bench.embedder.name}"
    model = st.text_input("Embedding model", hint, key=f"{key}-model-{name}", help=MODEL, placeholder=example).strip()
    columns, metric = _mapped(name, opening, resources, key) if is_address(opening.folder) else ({}, "")
    about = "Lets ragfilter write rules into the collection."
    writable = st.toggle("Allow changes", opening.writable, key=f"{key}-writable-{name}", help=about)
    if elements.button("Open", f"{key}-open", type="primary"):
        bench = resources.bench
        wanted = Opening(opening.folder, model, writable, columns, metric)
        with st.spinner("Checking …"):
            checks = bench.stores.open(name, wanted, bench.load_embedder)
        state.session().foreign_checks = name, checks
        state.open_collection(name)
        st.rerun()


def _mapped(name: str, opening: Opening, resources: Resources, key: str) -> tuple[dict[str, str], str]:
    table = cast("TableStore", resources.bench.stores.at(opening.folder)).look_up(name)
    columns = {**table.guess(), **opening.columns}
    with elements.row(f"{key}-columns", "bottom"):
        for field, names in table.choices().items():
            chosen = columns.pop(field, "")
            label, at = f"{field.capitalize()} column", names.index(chosen) if chosen in names else None
            widget_key, about = f"{key}-{field}-{name}", "Every other column becomes a field of the same name."
            column = st.selectbox(label, names, at, placeholder="all", key=widget_key, disabled=not names, help=about)
            columns |= {field: column} if column else {}
        spaces = {"l2": "l2", "cosine": "cosine", "ip": "inner product"}
        at, widget_key = [*spaces].index(opening.metric) if opening.metric else None, f"{key}-metric-{name}"
        called, about = spaces.__getitem__, "Cosine if the vectors have no index."
        metric = st.selectbox(
            "Distance", spaces, at, key=widget_key, placeholder="as its index", format_func=called, help=about
        )
    return columns, metric or ""


@state.then_page
def _close(name: str, resources: Resources) -> None:
    resources.bench.stores.forget(name)
    st.session_state.pop(MANAGED, None)
