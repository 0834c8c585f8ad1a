"""The table of figures on Evaluate and Tune: rows as `evaluate.frame` makes them, best first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.evaluate import frame, wording
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.frame import Row, interval_of

LABELS = {
    "f1": "F1", "precision": "precision", "recall": "recall", "f2": "F2", "ndcg": "nDCG",
    "kept": "chunks", "tokens": "tokens", "cost": "cost", "ms": "ms",
    "unlabelled": "unlabelled", "f1_most": "F1 upper bound",
}  # fmt: skip
MEASURES = ("f1", "precision", "recall", "f2", "ndcg", "tokens")
"""What rows are sorted by."""
FIRST = ("f1", "precision", "recall", "kept", "tokens")
"""The figures that a table shows unless all are asked for."""
HELP = {
    "ndcg": "trec_eval's nDCG of the kept chunks, in their order.",
    "ms": "Milliseconds to filter, without the search. A plain search has no such time.",
    "unlabelled": "Kept chunks without a label. They count as irrelevant.",
    "f1_most": "F1 if every kept chunk without a label were relevant.",
    "cost": "Price of the context tokens of 1,000 questions.",
    "tokens": "Estimated prompt tokens of the kept chunks.",
}
FORMATS = {"kept": "%.1f", "tokens": "%.0f", "ms": "%.1f", "unlabelled": "%.1f"}
BEST, OWN, CEILING = "★ best", "● yours", "ceiling"
NARROW, WIDTH, HEIGHT = 62, 78, 32
"""The widths of columns with a figure and the height of a row, in pixels: a window 900 wide shows
precision and recall, one 400 wide the first figure."""


def draw(
    rows: Sequence[Row], measure: str, *, key: str, own: str = "", every: bool = False,
    prices: Prices | None = None,
) -> None:  # fmt: skip
    """Draw rows with the interval of `measure`. With `own`, the name of the visitor's row, they are
    sorted by it, and the best one and the visitor's are marked."""
    shown = [name for name in dict.fromkeys((measure, *(LABELS if every else FIRST)))
             if name in rows[0] or (name == "cost" and prices)]  # fmt: skip
    knows = {"oracle": " (knows the labels)"}
    columns: dict[str, list[Any]] = {
        "settings": [" = ".join(_names(row)) + knows.get(row.get("group", ""), "") for row in rows]
    }
    config: dict[str, Any] = {
        "": st.column_config.TextColumn(width=100),
        "settings": st.column_config.TextColumn(
            width=190, help="Settings that keep the same chunks of every question share a row."
        ),
    }
    if own:
        columns = {"": _marks(rows, own), **columns}
    for name in shown:
        label, about = LABELS[name], HELP.get(name)
        if name == "cost" and prices is not None and prices.currency:
            about = f"{about} In {prices.currency}."
        cells = [
            frame.cost(row, prices) if name == "cost" and prices else interval_of(row, name)
            for row in rows
        ]
        columns[label] = [None if each is None else each.mean for each in cells]
        config[label] = st.column_config.NumberColumn(
            help=about, format=FORMATS.get(name, "%.3f"), width=WIDTH if len(label) > 6 else NARROW
        )
        if name == measure:
            columns["95% interval"] = [_ends(name, each) for each in cells]
            config["95% interval"] = st.column_config.TextColumn(
                width=98, help=f"The 95% interval of the mean {label} over the questions."
            )
    table = pd.DataFrame(columns)
    st.dataframe(
        table, key=key, hide_index=True, row_height=HEIGHT, placeholder="–",
        height=HEIGHT * (len(table) + 1) + 3, column_config=config,
    )  # fmt: skip


def _marks(rows: Sequence[Row], own: str) -> list[str]:
    best = next((row for row in rows if row["group"] != "oracle"), None)
    return [
        CEILING
        if row["group"] == "oracle"
        else " ".join([*([BEST] if row is best else []), *([OWN] if own in _names(row) else [])])
        for row in rows
    ]


def _names(row: Row) -> Sequence[str]:
    names: Sequence[str] = row.get("names") or [row["variant"]]
    return names


def _ends(name: str, interval: Interval | None) -> str:
    if interval is None:
        return "–"
    return wording.between_ends(interval, lambda value: FORMATS.get(name, "%.3f") % value, " – ")
