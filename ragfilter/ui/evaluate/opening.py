"""Open a question in Inspect, with the settings of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import pandas as pd
import streamlit as st

from ragfilter.stores.runs import Run
from ragfilter.ui.evaluate.measured import QueryRow
from ragfilter.ui.session import state

INSPECT = "pages/inspect.py"
PLAIN = "F1 less that of the unfiltered first k."


def grid(table: pd.DataFrame, rows: Sequence[QueryRow], run: Run, *, gain: str = PLAIN) -> None:
    """The table of questions; a click on a row opens it. `gain` says what ΔF1 is."""
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
                "lost", help="Relevant chunks of the unfiltered first k that were dropped."
            ),
            "ΔF1": st.column_config.NumberColumn("ΔF1", format="%+.3f", help=gain),
            **{
                name: st.column_config.NumberColumn(name, format="%.3f")
                for name in ("F1", "precision", "recall")
            },
            "no label": st.column_config.NumberColumn(
                "no label", help="Kept chunks without a label."
            ),
        },
    )
    selection: Any = picked["selection"]
    chosen = [row for row, _ in selection["cells"]] or selection["rows"]
    if chosen and chosen[0] < len(rows):
        inspect(rows[chosen[0]].query, run.plan.profile, run.plan.changes)


def inspect(query: str, profile: str, changes: Mapping[str, Any]) -> None:
    """Go to Inspect with this question and these settings."""
    state.take(profile, changes)
    state.ask(query)
    st.switch_page(INSPECT)
