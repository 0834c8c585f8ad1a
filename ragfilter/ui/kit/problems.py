"""Errors on the page: what happened and what to do about it, never a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ragfilter.errors import (
    Action,
    ModelError,
    RagfilterError,
    StoreUnavailable,
    WorkspaceLocked,
)
from ragfilter.layers.quality import reranker_key
from ragfilter.model import Failure, PoolResult
from ragfilter.report import judge_stats
from ragfilter.ui.look import prose
from ragfilter.ui.session import state

MAX_PROBLEMS = 5
COMMANDS: dict[Action, str] = {
    "index": "ragfilter index FOLDER --collection NAME",
    "finish": "ragfilter index SOURCE --collection NAME",
    "rebuild": "ragfilter index --rebuild --collection NAME",
    "replace": "ragfilter index SOURCE --collection NAME --reset",
}
TITLES: tuple[tuple[type[RagfilterError], str], ...] = (
    (WorkspaceLocked, "The workspace is in use"),
    (StoreUnavailable, "The vector store is not responding"),
    (ModelError, "A model is not available"),
)


def show(error: RagfilterError, *, retry: bool = True) -> None:
    """Show an error with its remedy and a retry button. Use `retry=False` for errors of which
    several may appear on one page."""
    title = next((word for kind, word in TITLES if isinstance(error, kind)), "")
    head = f"**{title}.** " if title else ""
    command = COMMANDS.get(error.action)
    remedy = (
        f"{error.remedy} Run `{command}`, also while the app runs." if command else error.remedy
    )
    with st.container(key="problem" if retry else None):
        st.error(f"{head}{prose.message(error.message)}  \n{prose.message(remedy)}".strip())
        if retry:
            st.button("Try again", key="retry", icon=":material/refresh:")


@contextmanager
def shown(*, retry: bool = False) -> Iterator[None]:
    """Show an error in here in its place. Functions that draw are decorated with it, and
    fragments must be: what is around them does not run with them."""
    try:
        yield
    except RagfilterError as error:
        show(error, retry=retry)


def incomplete(why: str) -> None:
    """Warn above a collection's answers that chunks may be missing, and why."""
    if why:
        st.warning(prose.message(why))


def failed(result: PoolResult) -> None:
    """Say once, in full, why the reranker or judge failed. The rows say
    "fallback"."""
    quality = result.settings.quality
    failed = {f.model: f for f in result.pool.failures}.get(reranker_key(quality))
    if failed is None and any(need.kind == "rerank" for need in result.needs):
        failed = hopeless(result)
    if quality.enabled and failed:
        then = " Then ask the question again." if failed.lasting else ""
        st.warning(
            f"**The reranker {prose.literal(quality.reranker)} failed; the "
            "quality layer uses distances instead.** "
            f"{prose.message(failed.error)}{then}"
        )
    judged = judge_stats(result)
    # The judge's own panel says so too, with its button.
    if judged is not None and judged.fallback and state.session().panel != "Judge":
        st.warning(
            "**The judge failed; the nearest chunks are kept instead.** "
            f"{prose.message(judged.error)}"
        )


def hopeless(result: PoolResult) -> Failure | None:
    """Why the current reranker is unavailable, as learned from any question of this session; None
    if it is not known to be. A new question tries it anyway."""
    pool, key = result.pool, reranker_key(result.settings.quality)
    known = state.session().hopeless
    if pool.reranker == key:
        known.pop(key, None)
    known.update({failure.model: failure for failure in pool.failures if failure.lasting})
    return known.get(key)


def notices(messages: tuple[list[str], list[str]]) -> None:
    """Show the ignored values in one message, then the other messages."""
    ignored, notes = messages
    # Drawn even if empty, so that the elements below it keep their positions.
    with st.container():
        if ignored:
            listed = "\n".join(f"- {prose.message(each)}" for each in ignored[:MAX_PROBLEMS])
            if len(ignored) > MAX_PROBLEMS:
                listed += f"\n- and {len(ignored) - MAX_PROBLEMS} more"
            st.warning(f"Some values were ignored:\n\n{listed}")
        for each in notes:
            st.warning(prose.message(each))
