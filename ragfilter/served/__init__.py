"""What is served: Streamlit's settings, page config and navigation.

Streamlit runs `app.py` and `pages/` of this folder, or those of a checkout, which are the same, and
searches the folder of `app.py` for modules: so it has no module that another library may ask for.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config
from streamlit.runtime.pages_manager import PagesManager

from ragfilter.ui import guard
from ragfilter.ui.look import theme
from ragfilter.ui.session import turns

WIDTH = 230
"""Pixels of the sidebar."""
PAGES = ("Inspect", "Rules", "Evaluate", "Tune", "Compare", "Collections")


def draw() -> None:
    """Draw the page that the visitor is on: every run, in every session."""
    st.set_page_config(
        page_title="ragfilter",
        page_icon=theme.ICON,
        layout="wide",
        initial_sidebar_state=WIDTH,
    )
    pages = [
        st.Page(f"pages/{title.lower()}.py", title=title, default=title == PAGES[0])
        for title in PAGES
    ]
    with turns.turn():
        st.navigation(pages, position="top").run()


def options() -> dict[str, Any]:
    """The arguments of the app, which the server makes once."""
    # To a first visitor who comes by a page's own address, Streamlit would list the folder `pages`
    # instead of the pages above.
    PagesManager.uses_pages_directory = False
    # Streamlit reads an option for every message it sends, under one lock, for which many sessions
    # wait longer than they work. Reading needs none: the options are a dict that is replaced whole.
    config._config_lock = nullcontext()  # type: ignore[assignment]
    return {"middleware": [Middleware(guard.Guard, hosts=guard.hosts())]}
