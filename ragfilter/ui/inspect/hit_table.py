"""Every hit of the pool as a table, with sorting, text filter and export. A row opens its chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.errors import StoreError
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.model import VALUE_NAMES
from ragfilter.results.rows import ChunkRow, csv, kept_first, references
from ragfilter.results.thresholds import compared
from ragfilter.rules.overview import WORDS, make_listing
from ragfilter.text import numbers
from ragfilter.ui.kit import grid, question_box
from ragfilter.ui.kit.guide import TERMS
from ragfilter.ui.look import elements, theme
from ragfilter.ui.look.prose import on_button, quiet
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import View

NAME, TITLE_PX = "rows", 188
WIDE = "\u2003" * 16
"""Spaces that fill the cell: a button is only as wide as its label, and all should be clickable."""
BY_RANK, KEPT_FIRST = "By rank", "Kept first"


def draw(view: View) -> None:
    """The table with its controls."""
    result, rows = view.shown, view.rows
    words, rule = st.session_state.get("filter", ""), st.session_state.get("filter-rule")
    look: dict[str, Any] = {"persist_state": "session", "label_visibility": "collapsed"}
    with elements.row("table-bar"):
        elements.choice("Order", (BY_RANK, KEPT_FIRST), key="order", default=BY_RANK)
        icon = ":material/search:"
        st.text_input("Filter", words, key="filter", placeholder="Words", icon=icon, width=112, **look)
        st.selectbox(
            "Rule",
            WORDS,
            WORDS.index(rule) if rule else None,
            key="filter-rule",
            placeholder="Any rule",
            format_func=lambda word: "no rule" if word == "none" else word,
            width=116,
            **look,
        )
        shown, exported = listed(view, rows), listed(view, view.exported)
        if len(shown) < len(rows):
            st.markdown(quiet(f"{numbers.count(len(shown))} of {numbers.count(len(rows))}"))
        with st.popover("More", key="table-more", type="tertiary"):
            with_refs = st.toggle("Show references", key="with-refs", persist_state="session")
            about = (
                "Downloads these chunks in this order, as the user can see them. Cells that a spreadsheet would run as "
                "formulas are escaped."
            )

            def export() -> str:
                return csv(exported, references(result) if with_refs else None)

            elements.download("CSV", "download-csv", export, "ragfilter.csv", about)
            question_box.draw_report(view, "download-report")
    refs = references(result, as_operator=view.operator) if with_refs else None
    table, ids = _frame(view, shown, refs), [row.id for row in shown]
    with st.container(key="table"):
        grid.draw(table, ids, name=NAME, height=400, columns=_columns(view, shown))
        # Arrow keys continue from the cell whose button was clicked. That does not focus the table: draw this later.
        elements.mount("kit/grid_keys.js", key="table-keys", data=state.session().table_clicks)


def listed(view: View, rows: Sequence[ChunkRow]) -> list[ChunkRow]:
    """`rows` as sorted and filtered by the controls, which need not be drawn yet."""
    order, wanted, rule = (st.session_state.get(key) for key in ("order", "filter", "filter-rule"))
    words, states = (wanted or "").casefold().split(), _rule_states(view) if rule else {}

    def fits(row: ChunkRow) -> bool:
        parts = (row.title, row.id, row.type, row.source, row.outcome, row.layer, row.reason)
        text = " ".join(parts).casefold()
        return (not rule or rule in states.get(row.id, ())) and all(word in text for word in words)

    return [row for row in (kept_first(rows) if order == KEPT_FIRST else rows) if fits(row)]


def _frame(view: View, rows: Sequence[ChunkRow], refs: Mapping[str, Sequence[str]] | None) -> pd.DataFrame:
    """The table's data for `rows`. The most important columns come first: a narrow window has room only up to the
    reason. `refs` has the references of each row by id."""
    titles = grid.fitting_titles([row.title for row in rows], TITLE_PX)
    columns: dict[str, list[Any]] = {
        "rank": [row.rank or None for row in rows],
        "outcome": [[f"{theme.mark(row.outcome, row.layer, row.setting).sign} {row.outcome}"] for row in rows],
        "title": [[on_button(title) + WIDE] for title in titles],
    }
    # The column would cut off the figures.
    columns["reason"] = [row.reason.replace(VALUE_NAMES["lowered"], "distance − words") for row in rows]
    if view.grades.keys() & {row.id for row in view.rows}:
        columns["label"] = [view.grades.get(row.id) for row in rows]
    if edited := _edited_rules(view):
        columns["rule"] = [edited.get(row.id, []) for row in rows]
    if refs is not None:
        columns["refers to"] = [", ".join(refs.get(row.id, ())) for row in rows]
    detail = cutoff_detail(view.shown)
    name, values = compared(view.shown, detail)
    if detail is not None and detail.value_kind != "distance":
        columns[name] = [values.get(row.id) for row in rows]
    columns["distance"] = [row.distance for row in rows]
    columns["gap"] = [row.gap for row in rows]
    if any(row.rerank_score is not None for row in view.rows):
        columns["rerank"] = [row.rerank_score for row in rows]
    for name in ("layer", "confidence", "similarity", "type"):
        columns[name] = [getattr(row, name) for row in rows]
    return pd.DataFrame(columns)


def _columns(view: View, shown: Sequence[ChunkRow]) -> dict[str, Any]:
    column, dark = st.column_config, theme.is_dark()
    words = {
        "reason": (232, "What was compared. The Chunk tab shows it in full."),
        "refers to": (214, "Chunk ids. Hidden chunks are not named."),
        "layer": (82, "The layer that kept or dropped the chunk."),
        "confidence": (78, "From the Confidence thresholds in the settings."),
        "type": (68, None),
    }
    figures = {
        compared(view.shown, cutoff_detail(view.shown))[0]: (176, "What the cutoff compared. Empty if dropped before."),
        "gap": (50, "Difference from the hit one rank above."),
        "rerank": (60, "The reranker's score, 0 to 1."),
        "similarity": (72, "1 − distance / 2 in an l2 collection, 1 − distance otherwise."),
    }
    farthest = max((row.distance for row in view.rows), default=1.0) or 1.0
    about = "Distance to the question in the collection's space. Lower is closer."
    return {
        **{name: column.TextColumn(width=w, help=about) for name, (w, about) in words.items()},
        **{name: column.NumberColumn(format="%.3f", width=w, help=about) for name, (w, about) in figures.items()},
        "rank": column.NumberColumn(width=44, help="Rank by distance to the question."),
        "outcome": grid.chip_column(94, theme.chips(dark=dark), f"pinned: {TERMS['pin']}"),
        "title": column.ButtonColumn(
            width=TITLE_PX,
            help="Click to open the chunk.",
            type="tertiary",
            alignment="left",
            key="rows-open",
            on_click=grid.open_clicked,
            args=("rows-open", NAME, "title", [row.id for row in shown]),
        ),
        "label": column.NumberColumn(
            width=52,
            format=f"{theme.LABELLED} %d",
            help="2: relevant, 1: partly, 0: not relevant. By people or, without one, from the collection.",
        ),
        "rule": grid.chip_column(
            92, theme.rule_chips(dark=dark), "draft: not saved. changed: edited since the last export."
        ),
        "distance": column.ProgressColumn(format="%.3f", min_value=0.0, max_value=farthest, width=90, help=about),
    }


def _rule_states(view: View) -> dict[str, tuple[str, ...]]:
    """The rule states of each chunk in a result. Findings that involve several rules consider only these chunks."""
    # Without texts, as on the Rules page, because the settings decide which texts were fetched.
    chunks = (replace(hit.chunk, text="") for hit in view.shown.hits)
    listing = make_listing(chunks, view.resources.checks, exported=_exported_rules(view))
    return {row.id: row.words for row in listing.with_unsaved(state.unsaved_chunk_ids()).rows}


def _edited_rules(view: View) -> dict[str, list[str]]:
    """How rules were edited, for the chunks in a result whose rule was edited."""
    before, rules = _exported_rules(view), {hit.id: hit.chunk.rule or None for hit in view.shown.hits}
    unsaved, changed = state.unsaved_chunk_ids(), {i for i in before if before[i] != rules[i]}
    words = (("draft", unsaved), ("changed", changed))
    return {i: [theme.rule_state(word) for word, ids in words if i in ids] for i in changed | unsaved}


def _exported_rules(view: View) -> dict[str, str | None]:
    """The rules at the last export, for the edited chunks of the result."""
    shown = [hit.id for hit in view.shown.hits]
    try:
        return view.resources.bench.journal.edited_since_export(view.asked.collection, shown)
    except StoreError:
        return {}  # The editor shows the journal's error.
