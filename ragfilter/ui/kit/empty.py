"""Empty states that say what is missing, with a button that provides it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.layers.registry import layer
from ragfilter.model import LayerTrace, PoolResult
from ragfilter.ui.kit import demo_collections, problems
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import Visit, forget_collections

COMMAND_WIDTH = 640
"""Pixels: as wide as the text above it."""


def draw(visit: Visit, error: RagfilterError | None) -> None:
    """Say why there is no result, and offer a way to get one."""
    if error is not None:
        problems.show(error)
    elif not visit.collections:
        if _no_collection(visit.resources):
            forget_collections()
            st.rerun()
    elif not visit.ready:
        _empty_collection(state.session().collection)
    else:
        _place(
            "no-question",
            "Ask a question to see the filter at work",
            "One wide search finds candidates, and the filter drops what the question does not "
            "need.",
        )


def _no_collection(resources: Resources) -> bool:
    """There is no collection. True once a demo has been built."""
    _place(
        "no-collection",
        "No collection yet",
        "ragfilter searches collections of text chunks. Two samples are included.",
    )
    if demo_collections.offer(list(demo_collections.DEMOS), resources):
        return True
    st.page_link(
        "pages/collections.py",
        label="Or add your own files",
        icon=":material/upload_file:",
        help="Markdown, text, PDF, CSV, JSONL or OpenAPI, on the Collections page.",
    )
    return False


def _empty_collection(name: str) -> None:
    """The collection has no chunks."""
    _place(
        "empty-collection",
        f"Collection {name} is empty",
        "The collection exists but has no chunks. Indexing may have been interrupted. Choose "
        "another one on the left, or fill this one.",
    )
    html.draw('<p class="rf-caption rf-more">Add files on the Collections page, or run:</p>')
    command = f"ragfilter index FOLDER --collection {name}"
    st.code(command, language=None, width=COMMAND_WIDTH)


def nothing_found() -> None:
    """The store found nothing."""
    _place("nothing-found", "No results", "The store found nothing for this question.")


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
        nothing_found()
        return
    word = "chunk" if last.n_in == 1 else f"{last.n_in} chunks"
    label, values = relaxed(last, result)
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
        help="Changes this setting. Reset goes back to the profile.",
    )


def relaxed(trace: LayerTrace, result: PoolResult) -> tuple[str, dict[str, Any]]:
    """The change that makes `trace`'s layer keep something, and its label."""
    off = f"Switch {trace.layer} off", {f"{trace.layer}.enabled": False}
    return layer(trace.layer).relax(trace, result) or off


def _place(key: str, title: str, words: str) -> None:
    html.draw(
        f'<section class="rf-place" id="{key}"><h2>{html.text(title)}</h2>'
        f"<p>{html.text(words)}</p></section>"
    )
