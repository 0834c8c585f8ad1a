"""Builds a demo collection from the page. It is indexed by the queue, like every other one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.indexing.order import Order
from ragfilter.indexing.queue import IndexJob, Queue, queue_of
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html
from ragfilter.ui.session import state, turns
from ragfilter.ui.session.resources import Resources

if TYPE_CHECKING:
    from ragfilter.stores.base import CollectionInfo

LOOK_S = 0.3


class Demo(NamedTuple):
    """A demo collection: the label of its button, and what it is for."""

    button: str
    about: str


DEMOS: dict[str, Demo] = {
    "demo": Demo(
        "Build the demo collection",
        "The rules of an invented fantasy game, to try the layers with: look-alike tables, "
        "comparisons, secrets.",
    ),
    "adsapi": Demo(
        "Build the API collection",
        "The description of an invented advertising API, to try the LLM judge with: operations "
        "and schemas that refer to each other.",
    ),
}
HELP = "Embeds a few hundred chunks with the bundled model. Takes under a minute on most machines."


def missing(collections: Mapping[str, CollectionInfo]) -> list[str]:
    """The demos that do not exist or are incomplete."""
    return [n for n in DEMOS if n not in collections or not collections[n].complete]


def offer(names: Sequence[str], resources: Resources) -> bool:
    """Draw one button per demo, the first as primary, or the progress of the demo that is being
    built. True once that has ended, unless it failed. Raises StoreError."""
    queue = queue_of(resources.bench)
    orders = [Order(name, name) for name in DEMOS]
    jobs = (job for job in queue.jobs() if job.standing.open and job.order in orders)
    job = next(jobs, None)
    if job is not None:
        return _built(job, queue)
    with st.container(key="demos", gap="small"):
        for name in names:
            with st.container(key=f"demo-{name}", gap="small"):
                html.draw(f'<p class="rf-demo"><b>{name}</b> {html.text(DEMOS[name].about)}</p>')
                st.button(
                    DEMOS[name].button,
                    key=f"build-{name}",
                    type="primary" if name == "demo" else "secondary",
                    icon=":material/play_arrow:",
                    on_click=order,
                    args=(name, queue),
                    help=HELP,
                )
    return False


@state.tell_errors()
def order(name: str, queue: Queue) -> None:
    """Have the queue index this demo."""
    queue.put(Order(name, name))


def _built(job: IndexJob, queue: Queue) -> bool:
    """Draw the progress until the job ends, and take it off the queue. Leaving the page ends only
    the waiting."""
    st.button(
        "Stop",
        key="stop-build",
        icon=":material/stop:",
        on_click=state.tell_errors()(queue.stop),
        args=(job.id,),
        help="Stops after the current batch. Build again to continue from there.",
    )
    bar = st.progress(0.0, text="Waiting to be indexed …")
    current: IndexJob | None = job
    while (current := queue.job(job.id)) is not None and (at := current.standing).open:
        if at.state == "running":
            text = f"{at.share:.0%} of {at.phase}" if at.total else "Loading the embedding model …"
            bar.progress(at.share, text=text)
        with turns.away():
            time.sleep(LOOK_S)
    bar.empty()
    queue.remove(job.id)
    if current is not None and current.standing.state == "failed":
        try:
            current.standing.result()
        except RagfilterError as error:
            problems.show(error)
        return False
    if current is None or current.standing.state == "done":
        state.session().collection = job.order.collection
    return True
