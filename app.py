"""The app. Streamlit imports this file once for the server, and runs it for every page."""

import streamlit as st

from ragfilter import served

if __name__ == "__main__":
    served.draw()
else:
    app = st.App(__file__, **served.options())
