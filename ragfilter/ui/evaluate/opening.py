"""Open a question in Inspect, with the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import pandas as pd
import streamlit as st

from ragfilter.evaluate import stored
from ragfilter.stores.runs import Run
from ragfilter.ui.evaluate.measured import QueryRow
from ragfilter.ui.session import state

INSPECT = "pages/inspect.py"
COMPARE = "pages/compare.py"


def grid(table: pd.DataFrame, rows: Sequence[QueryRow], run: Run) -> None:
    """The table of questions; a click on a row opens it."""
    # A new key only where other rows stand in the table.
    key = crc32("|".join(row.id for row in rows).encode("utf-8", "replace"))
    picked = st.dataframe(
        table,
        key=f"questions-{run.id}-{key}",
        hide_index=True,
        height=460,
        row_height=32,
        on_select="rerun",
        selection_mode=("single-row", "single-cell"),
        column_config={
            "question": st.column_config.TextColumn("question", width=420),
            "lost": st.column_config.NumberColumn(
                "lost", help="Relevant chunks that the pool holds and the filter drops."
            ),
            "ΔF1": st.column_config.NumberColumn(
                "ΔF1", format="%+.3f", help="F1 less that of the unfiltered first k."
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
    row = clicked(picked)
    if row is not None and row < len(rows):
        inspect(rows[row].query, run.plan.profile, run.plan.changes)


def clicked(picked: Any) -> int | None:
    """The row of a table that was clicked."""
    selection = picked["selection"]
    chosen = [row for row, _ in selection["cells"]] or selection["rows"]
    return int(chosen[0]) if chosen else None


def inspect(query: str, profile: str, changes: Mapping[str, Any]) -> None:
    """Go to Inspect with this question and these settings."""
    state.take(profile, changes)
    state.ask(query)
    st.switch_page(INSPECT)


def compare(run: Run) -> None:
    """Go to Compare with this run as side B, over its questions."""
    name, _ = stored.untitled(run.plan.query_set)
    st.session_state.compared = {"a": "unfiltered", "b": f"run-{run.id}", "set": name}
    st.switch_page(COMPARE)
