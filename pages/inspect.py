from ragfilter import streamlit_app

streamlit_app.inspect()
