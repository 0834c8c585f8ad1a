"""The app: page config and navigation, nothing else. Start it with `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

from ragfilter.ui import theme

st.set_page_config(
    page_title="ragfilter", page_icon=theme.ICON, layout="wide", initial_sidebar_state="expanded"
)
st.navigation([st.Page("pages/inspect.py", title="Inspect", default=True)]).run()
