"""Open a question in Inspect, with the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from ragfilter.evaluate import query_sets
from ragfilter.stores.runs import Run
from ragfilter.ui.session import state


def inspect(query: str, profile: str, changes: Mapping[str, Any]) -> None:
    """Open this question in Inspect with these settings."""
    state.take(profile, changes)
    state.ask(query)
    st.switch_page("pages/inspect.py")


def compare(run: Run) -> None:
    """Open Compare with this run as side B, over its questions."""
    name, _, _ = query_sets.untitled(run.plan.query_set)
    state.session().compared = {"a": "unfiltered", "b": f"run-{run.id}", "set": name}
    st.switch_page("pages/compare.py")
