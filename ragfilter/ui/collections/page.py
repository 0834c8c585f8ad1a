"""The Collections page: add data on the left, existing collections on the right."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.ui.collections import add, jobs, manage
from ragfilter.ui.kit import problems
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import Visit


def draw(visit: Visit) -> None:
    """Draw the upload, the indexing jobs, and the existing collections."""
    left, right = st.columns((1, 1.1), gap="large")
    with left:
        add.draw(visit)
    with right:
        try:
            jobs.draw(visit.resources)
            manage.draw(visit, state.onlooker())
        except RagfilterError as error:
            problems.show(error)
