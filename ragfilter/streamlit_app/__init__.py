"""The served app: Streamlit's settings, the navigation, and the pages.

Streamlit runs `app.py` and `pages/` of this folder, or the same files of a checkout. It searches the folder of `app.py`
for modules, so no module there may have the name of another library's. A page imports what it draws when it is first
visited."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config
from streamlit.runtime.pages_manager import PagesManager

from ragfilter.errors import RagfilterError
from ragfilter.ui import jobs
from ragfilter.ui.kit import controls, guide, problems, question_box
from ragfilter.ui.look import elements, theme
from ragfilter.ui.request_guard import RequestGuard, hosts
from ragfilter.ui.session import link, state
from ragfilter.ui.session.page_run import PageRun, begin_page, current_view

WIDTH = 230
"""Pixels of the sidebar."""
PAGES = ("Inspect", "Rules", "Evaluate", "Tune", "Compare", "Collections")


def draw() -> None:
    """Draw the page that the visitor is on: every run, in every session."""
    st.set_page_config(page_title="ragfilter", page_icon=theme.ICON, layout="wide", initial_sidebar_state=WIDTH)
    pages = [st.Page(f"pages/{title.lower()}.py", title=title, default=title == PAGES[0]) for title in PAGES]
    with jobs.run_lock():
        page = st.navigation(pages, position="top")
        if state.KEY in st.session_state:
            state.session().page = f"pages/{page.title.lower()}.py"
        page.run()


def options() -> dict[str, Any]:
    """The arguments of the app, which the server makes once."""
    # Streamlit would otherwise list the folder `pages`, instead of the pages above, to a first
    # visitor who comes by a page's own address.
    PagesManager.uses_pages_directory = False
    # Streamlit reads an option for every message under one lock, and many sessions wait for it
    # longer than they work. Reading needs no lock: the options are a dict that is replaced whole.
    config._config_lock = nullcontext()  # type: ignore[assignment]
    return {"middleware": [Middleware(RequestGuard, hosts=hosts())]}


def inspect() -> None:
    """One question, from the store to the answer."""
    elements.add_style_sheet()
    page_run = _begin_run()
    # Do not end with st.stop(): Streamlit would keep the state of controls that were not drawn,
    # and the browser, which has forgotten them, would report its defaults as the user's choices.
    if state.session().present:
        from ragfilter.ui.inspect import page

        page.present(page_run)
        return
    slot = guide.reserve()
    controls.draw_viewer()
    controls.draw_choices(page_run, reset=False)
    problems.draw_notices(state.take_notices())
    question_box.draw(page_run)
    view, error = current_view(page_run)
    if view is not None:
        from ragfilter.ui.inspect import page

        slots = page.begin(view)
    # After the curve, which people watch after Enter or while moving a slider.
    link.show_address()
    controls.draw(page_run, view)
    guide.draw_path(page_run, slot, "inspect")
    if view is not None:
        guide.draw_tour(view)
        page.finish(view, slots)
    else:
        elements.unseen_heading("Inspect", level=1)
        controls.draw_reset("Reset")
        problems.draw_empty(page_run, error)
        guide.draw(page_run.resources)


def rules() -> None:
    """The `query_must` rules of a collection's chunks: written, tried and trusted."""
    from ragfilter.ui.rules import page

    # Undo and Redo on this page are for rules.
    page_run = _begin("Rules", undo=False)
    controls.draw(page_run, None)
    page.draw(page_run)


def evaluate() -> None:
    """Settings measured on labelled questions, beside the alternatives."""
    from ragfilter.ui.evaluate import page

    page.draw(_without_question("Evaluate"))


def tune() -> None:
    """The settings that labelled questions justify."""
    from ragfilter.ui.tune import page

    page.draw(_without_question("Tune"))


def compare() -> None:
    """Two settings side by side, over one question or a query set."""
    from ragfilter.ui.compare import page

    page.draw(_begin(""))


def collections() -> None:
    """Your own data: added, managed and exported."""
    from ragfilter.ui.collections import page

    page.draw(_without_question("Collections", relist=True))


def _without_question(title: str, *, relist: bool = False) -> PageRun:
    """Begin a page without a question; with `relist`, list the collections again."""
    page_run = _begin(title, relist=relist)
    link.update()
    link.show_address()
    controls.draw(page_run, None)
    return page_run


def _begin(title: str, *, relist: bool = False, undo: bool = True) -> PageRun:
    """Draw the frame of a page: its heading if it has a `title`, the path, help, the viewing user, the choices in the
    sidebar, and messages."""
    elements.add_style_sheet()
    if title:
        elements.unseen_heading(title, level=1)
    page_run = _begin_run(relist=relist)
    slot = guide.reserve()
    controls.draw_choices(page_run, undo=undo)
    guide.draw_path(page_run, slot, title.lower())
    with slot:
        guide.draw(page_run.resources)
    controls.draw_viewer()
    problems.draw_notices(state.take_notices())
    return page_run


def _begin_run(*, relist: bool = False) -> PageRun:
    """Begin the run of a page. If that fails, show the error and stop."""
    try:
        return begin_page(relist=relist)
    except RagfilterError as error:
        problems.draw_error(error)
        st.stop()
