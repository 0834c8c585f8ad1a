"""The app. Streamlit imports this file once for the server, and runs it for every page."""

import streamlit as st

from ragfilter import streamlit_app

if __name__ == "__main__":
    streamlit_app.draw()
else:
    app = st.App(__file__, **streamlit_app.options())
