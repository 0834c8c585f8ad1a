"""The app: how it is served, page config and navigation. Start it with `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.pages_manager import PagesManager

from ragfilter.ui import guard
from ragfilter.ui.look import theme

if __name__ == "__main__":
    # Every run of the page, in every session.
    st.set_page_config(
        page_title="ragfilter",
        page_icon=theme.ICON,
        layout="wide",
        initial_sidebar_state="auto",
    )
    pages = [
        st.Page("pages/inspect.py", title="Inspect", default=True),
        st.Page("pages/rules.py", title="Rules"),
        st.Page("pages/evaluate.py", title="Evaluate"),
        st.Page("pages/tune.py", title="Tune"),
        st.Page("pages/compare.py", title="Compare"),
        st.Page("pages/collections.py", title="Collections"),
    ]
    st.navigation(pages, position="top").run()
else:
    # Imported once, by the server. To a first visitor who comes by a page's own address, Streamlit
    # would list the folder `pages` instead of the pages above.
    PagesManager.uses_pages_directory = False
    app = st.App(__file__, middleware=[Middleware(guard.Guard, hosts=guard.hosts())])
