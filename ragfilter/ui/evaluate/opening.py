"""Open a question in Inspect, with the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.evaluate import stored
from ragfilter.stores.runs import Run
from ragfilter.ui.evaluate.measured import QueryRow
from ragfilter.ui.main import grid
from ragfilter.ui.session import state

INSPECT = "pages/inspect.py"
COMPARE = "pages/compare.py"


def draw_questions(table: pd.DataFrame, rows: Sequence[QueryRow], run: Run) -> None:
    """The table of questions; a click on a row opens it."""
    picked = st.dataframe(
        table,
        key=grid.key_of(f"questions-{run.id}", (row.id for row in rows)),
        hide_index=True,
        height=460,
        row_height=32,
        on_select="rerun",
        selection_mode=("single-row", "single-cell"),
        column_config={
            "question": st.column_config.TextColumn("question", width=420),
            "lost": st.column_config.NumberColumn(
                "lost", help="Relevant chunks in the pool that the filter drops."
            ),
            "ΔF1": st.column_config.NumberColumn(
                "ΔF1", format="%+.3f", help="F1 minus that of the unfiltered first k."
            ),
            **{
                name: st.column_config.NumberColumn(name, format="%.3f")
                for name in ("F1", "precision", "recall")
            },
            "no label": st.column_config.NumberColumn(
                "no label", help="Kept chunks without a label."
            ),
        },
    )
    row = grid.clicked(picked, len(rows))
    if row is not None:
        inspect(rows[row].query, run.plan.profile, run.plan.changes)


def inspect(query: str, profile: str, changes: Mapping[str, Any]) -> None:
    """Go to Inspect with this question and these settings."""
    state.take(profile, changes)
    state.ask(query)
    st.switch_page(INSPECT)


def compare(run: Run) -> None:
    """Go to Compare with this run as side B, over its questions."""
    name, _, _ = stored.untitled(run.plan.query_set)
    st.session_state.compared = {"a": "unfiltered", "b": f"run-{run.id}", "set": name}
    st.switch_page(COMPARE)
