"""Empty states that say what is missing, with a button that provides it: the demo collections,
which the queue indexes like every other one, or a layer that drops less."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.indexing.order import Order
from ragfilter.indexing.queue import Queue, queue_of
from ragfilter.layers.registry import layer
from ragfilter.model import PoolResult
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import Visit

DEMOS = {
    "demo": (
        "Build the demo collection",
        "The rules of an invented fantasy game, to try the layers with: look-alike tables, "
        "comparisons, secrets.",
    ),
    "adsapi": (
        "Build the API collection",
        "The description of an invented advertising API, to try the LLM judge with: operations "
        "and schemas that refer to each other.",
    ),
}
"""The demo collections: the label of the button, and what each is for."""


def draw(visit: Visit, error: RagfilterError | None) -> None:
    """Say why there is no result, and offer a way to get one."""
    if error is not None:
        problems.show(error)
    elif not visit.collections:
        _no_collection(visit.resources)
    elif not visit.ready:
        _empty_collection(state.session().collection)
    else:
        _place(
            "no-question",
            "Ask a question to see the filter at work",
            "One wide search finds candidates, and the filter drops what the question does not "
            "need.",
        )


def _no_collection(resources: Resources) -> None:
    _place(
        "no-collection",
        "No collection yet",
        "ragfilter searches collections of text chunks. Two samples are included.",
    )
    queue = queue_of(resources.bench)
    with st.container(key="demos", gap="small"):
        for name, (_, about) in DEMOS.items():
            with st.container(key=f"demo-{name}", gap="small"):
                html.draw(f'<p class="rf-demo"><b>{name}</b> {html.text(about)}</p>')
                draw_build_button(
                    name, queue, "Embeds a few hundred chunks with the bundled model. Takes under "
                    "a minute on most machines.",
                )  # fmt: skip
    st.page_link(
        "pages/collections.py",
        label="Or add your own files",
        icon=":material/upload_file:",
    )


def draw_build_button(name: str, queue: Queue, about: str) -> None:
    """Draw the button that has the queue index a demo, which Collections shows."""
    if st.button(
        DEMOS[name][0], key=f"build-{name}", icon=":material/play_arrow:",
        type="primary" if name == "demo" else "secondary", help=about,
    ):  # fmt: skip
        with state.tell_errors():
            queue.put(Order(name, name))
        st.switch_page("pages/collections.py")


def _empty_collection(name: str) -> None:
    """The collection has no chunks."""
    _place(
        "empty-collection",
        f"Collection {name} is empty",
        "The collection exists but has no chunks. Indexing may have been interrupted. Choose "
        "another one on the left, or add files on the Collections page.",
    )
    st.code(f"ragfilter index FOLDER --collection {name}", language=None, width="content")


def nothing_kept(result: PoolResult) -> None:
    """Every hit was dropped: show the layer that dropped the last one, with a button that relaxes
    it."""
    if result.status == "insufficient_clearance" and not state.session().operator:
        # Users cannot grant themselves access.
        reason = html.text(result.message)
        html.draw(f'<p class="rf-empty"><b>Nothing is kept.</b> {reason}</p>')
        return
    last = next((t for t in result.traces if t.enabled and t.n_in and not t.n_out), None)
    if last is None:
        _place("nothing-found", "No results", "The store found nothing for this question.")
        return
    word = "chunk" if last.n_in == 1 else f"{last.n_in} chunks"
    off = f"Switch {last.layer} off", {f"{last.layer}.enabled": False}
    label, values = layer(last.layer).relax(last, result) or off
    why = "" if values else html.text(label)
    html.draw(
        f'<p class="rf-empty"><b>{html.text(layer(last.layer).title)} dropped the last {word}.</b> '
        f"{why}</p>"
    )
    if not values:
        return
    st.button(
        label,
        key="relax",
        type="primary",
        on_click=state.change,
        args=(values,),
    )


def _place(key: str, title: str, words: str) -> None:
    html.draw(
        f'<section class="rf-place" id="{key}"><h2>{html.text(title)}</h2>'
        f"<p>{html.text(words)}</p></section>"
    )
