"""Errors on the page: what happened and what to do about it, never a traceback. Also empty places: what is missing, and
a button that helps, such as one that builds a demo or relaxes a layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ragfilter.errors import Action, RagfilterError
from ragfilter.indexing.queue import queue_of
from ragfilter.layers.quality import reranker_key
from ragfilter.layers.registry import layer
from ragfilter.model import Failure, PoolResult
from ragfilter.results.verdicts import judge_stats
from ragfilter.ui.kit import controls, guide
from ragfilter.ui.look import elements, prose
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import PageRun

MAX_PROBLEMS = 5
COMMANDS: dict[Action, str] = {
    "index": "ragfilter index FOLDER --collection NAME",
    "finish": "ragfilter index SOURCE --collection NAME",
    "rebuild": "ragfilter index --rebuild --collection NAME",
    "replace": "ragfilter index SOURCE --collection NAME --reset",
}


def draw_error(error: RagfilterError, *, retry: bool = True) -> None:
    """Show an error with its remedy and, unless a page may have several, a retry button."""
    command = COMMANDS.get(error.action)
    remedy = f"{error.remedy} Run `{command}`; the app can keep running." if command else error.remedy
    with st.container(key="problem" if retry else None):
        st.error(f"{prose.message(error.message)}  \n{prose.message(remedy)}".strip())
        if retry and error.action == "recalibrate":
            if elements.button("Recalibrate", "problem-recalibrate", icon="sync"):
                state.open_recalibration()
        elif retry:
            elements.button("Try again", "retry", icon="refresh")


@contextmanager
def show_errors(*, retry: bool = False) -> Iterator[None]:
    """Show an error raised inside, where it is raised. Decorates functions that draw. Fragments need it,
    because the code around them does not run again with them."""
    try:
        yield
    except RagfilterError as error:
        draw_error(error, retry=retry)


def draw_incomplete(why: str) -> None:
    """Warn that a collection may lack chunks, and `why`."""
    if why:
        st.warning(prose.message(why))


def draw_failures(result: PoolResult) -> None:
    """Say once, in full, why the reranker or judge failed; rows say "fallback"."""
    quality = result.settings.quality
    failed = {f.model: f for f in result.pool.failures}.get(reranker_key(quality))
    if failed is None and any(need.kind == "rerank" for need in result.needs):
        failed = lasting_failure(result)
    if quality.enabled and failed:
        then = " Then ask the question again." if failed.lasting else ""
        st.warning(
            f"**The reranker {controls.choice_label(quality.reranker)} failed; the "
            "quality layer uses distances instead.** "
            f"{prose.message(failed.error)}{then}"
        )
    judged = judge_stats(result)
    # The judge's own panel says so too, with its button.
    if judged is not None and judged.fallback and state.session().panel != "Judge":
        st.warning(f"**The judge failed; the nearest chunks are kept instead.** {prose.message(judged.error)}")


def lasting_failure(result: PoolResult) -> Failure | None:
    """Why the current reranker is unavailable, as known from any question of this session; None if
    it may work. A new question tries it anyway."""
    pool, key = result.pool, reranker_key(result.settings.quality)
    known = state.session().lasting_failures
    if pool.reranker == key:
        known.pop(key, None)
    known.update({failure.model: failure for failure in pool.failures if failure.lasting})
    return known.get(key)


def draw_notices(messages: list[str]) -> None:
    """Show messages in one box."""
    # Drawn even if empty, so that the elements below it keep their positions.
    with st.container():
        if messages:
            more = len(messages) - MAX_PROBLEMS
            rest = [f"and {more} more"] if more > 0 else []
            st.warning("\n\n".join(map(prose.message, [*messages[:MAX_PROBLEMS], *rest])))


def draw_empty(page_run: PageRun, error: RagfilterError | None) -> None:
    """Say why there is no result, and offer a remedy."""
    if error is not None:
        draw_error(error)
    elif not page_run.collections:
        _no_collection(page_run.resources)
    elif not page_run.ready:
        name = state.session().collection
        words = (
            "The collection exists but has no chunks. Indexing may have been interrupted. Choose "
            "another one on the left, or add files on the Collections page."
        )
        _message("empty-collection", f"Collection {name} is empty", words)
        st.code(f"ragfilter index FOLDER --collection {name}", language=None, width="content")
    else:
        words = "One wide search finds candidates, and the filter drops chunks the question does not need."
        _message("no-question", "Ask a question to see the filter at work", words)


def _no_collection(resources: Resources) -> None:
    words = "ragfilter searches collections of text chunks. Two samples are included."
    _message("no-collection", "No collection yet", words)
    cost = "Embeds a few hundred chunks with the bundled model. Takes under a minute on most machines."
    with st.container(key="demos", gap="small"):
        for name, (_, about) in guide.DEMOS.items():
            with st.container(key=f"demo-{name}", gap="small"):
                elements.draw(f'<p class="rf-demo"><b>{name}</b> {elements.text(about)}</p>')
                guide.draw_build_button(name, queue_of(resources.bench), cost)
    st.page_link("pages/collections.py", label="Or add your own files", icon=":material/upload_file:")


def draw_nothing_kept(result: PoolResult) -> None:
    """Show the layer that dropped the last hit, with a button that relaxes it."""
    if result.status == "insufficient_clearance" and not state.session().operator:
        # Users cannot grant themselves access.
        elements.draw(f'<p class="rf-empty"><b>Nothing is kept.</b> {elements.text(result.message)}</p>')
        return
    last = next((t for t in result.traces if t.enabled and t.n_in and not t.n_out), None)
    if last is None:
        _message("nothing-found", "No results", "The store found nothing for this question.")
        return
    word = "chunk" if last.n_in == 1 else f"{last.n_in} chunks"
    off = f"Switch {last.layer} off", {f"{last.layer}.enabled": False}
    label, values = layer(last.layer).relax(last, result) or off
    why = "" if values else elements.text(label)
    title = elements.text(layer(last.layer).title)
    elements.draw(f'<p class="rf-empty"><b>{title} dropped the last {word}.</b> {why}</p>')
    if values:
        elements.button(label, "relax", state.change_settings, values, type="primary")


def _message(key: str, title: str, words: str) -> None:
    elements.draw(
        f'<section class="rf-place" id="{key}"><h2>{elements.text(title)}</h2><p>{elements.text(words)}</p></section>'
    )
