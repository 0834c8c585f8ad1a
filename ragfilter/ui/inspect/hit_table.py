"""Every hit of the pool as a table: sorting, text filter, export. A row opens its chunk."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.layers.cutoff import DISTANCE, cut_of
from ragfilter.model import PoolResult
from ragfilter.report import ChunkRow, csv, kept_first, references
from ragfilter.report.thresholds import compared
from ragfilter.rules.overview import WORDS
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.kit import grid, share
from ragfilter.ui.kit.rule_editor import desk
from ragfilter.ui.look import elements, theme
from ragfilter.ui.look.prose import on_button, quiet
from ragfilter.ui.session.visit import View

NAME, HEIGHT = "rows", 400
TITLE_WIDTH = 28
WIDE = "\u2003" * 16
"""A button is as wide as its label; these spaces fill the cell, so that all of it is clickable."""
BY_RANK, KEPT_FIRST = "By rank", "Kept first"


def draw(view: View) -> None:
    """The table with its controls."""
    result, rows = view.shown, view.rows
    with st.container(key="table-bar", horizontal=True, vertical_alignment="center", gap="small"):
        order = elements.choice("Order", (BY_RANK, KEPT_FIRST), key="order", default=BY_RANK)
        wanted = st.text_input(
            "Filter", st.session_state.get("filter", ""), key="filter", persist_state="session",
            placeholder="Words", label_visibility="collapsed", icon=":material/search:", width=112,
        )  # fmt: skip
        rule = st.session_state.get("filter-rule")
        st.selectbox(
            "Rule",
            WORDS,
            WORDS.index(rule) if rule else None,
            key="filter-rule",
            persist_state="session",
            placeholder="Any rule",
            label_visibility="collapsed",
            format_func=lambda word: "no rule" if word == "none" else word,
            width=116,
        )
        admitted = _admitted(view)
        shown = _matching(_ordered(rows, order), wanted or "", admitted)
        if len(shown) < len(rows):
            st.markdown(quiet(f"{numbers.count(len(shown))} of {numbers.count(len(rows))}"))
        with st.popover("More", key="table-more", type="tertiary"):
            with_refs = st.toggle("Show references", key="with-refs", persist_state="session")
            st.download_button(
                "CSV",
                data=lambda: csv(
                    _matching(_ordered(view.exported, order), wanted or "", admitted),
                    references(result) if with_refs else None,
                ),
                file_name="ragfilter.csv",
                mime="text/csv",
                key="download-csv",
                icon=":material/download:",
                on_click="ignore",
                help="Download these chunks in this order, as the user may see them. Cells that a "
                "spreadsheet would run as formulas are escaped.",
            )
            share.draw_report(view, "download-report")
    refs = references(result, as_operator=view.operator) if with_refs else None
    edited = desk.edited(view)
    with st.container(key="table"):
        grid.draw(
            frame(
                shown,
                with_score=any(row.rerank_score is not None for row in rows),
                refs=refs,
                edited=edited,
                labels=view.grades,
                of_cutoff=compared(result, cut_of(result)),
            ),
            [row.id for row in shown],
            name=NAME,
            height=HEIGHT,
            row_height=32,
            columns=_columns(
                result, rows, shown, two_signs=any(len(each) > 1 for each in edited.values())
            ),
        )
        grid.follow_keys()


def in_order(view: View) -> tuple[ChunkRow, ...]:
    """The rows of the table, sorted and filtered. Works before the table is drawn."""
    order, wanted = (st.session_state.get(key) for key in ("order", "filter"))
    return _matching(_ordered(view.rows, order), wanted or "", _admitted(view))


def frame(
    rows: Sequence[ChunkRow],
    *,
    with_score: bool,
    refs: Mapping[str, Sequence[str]] | None = None,
    edited: Mapping[str, list[str]] = MappingProxyType({}),
    labels: Mapping[str, int] = MappingProxyType({}),
    of_cutoff: tuple[str, Mapping[str, float]] = ("", MappingProxyType({})),
) -> pd.DataFrame:
    """The table's data for `rows`. `refs` has the references of each row, `edited` how its rule was
    edited, and `labels` its grade, all by id. `of_cutoff` is the value that the
    cutoff compared: its name, and each hit's.

    The columns that a narrow window must show come first: it has room only up to the reason.
    """
    titles = telling_titles([row.title for row in rows], TITLE_WIDTH)
    columns: dict[str, list[Any]] = {
        "rank": [row.rank or None for row in rows],
        "outcome": [
            [f"{theme.mark(row.outcome, row.layer, row.setting).sign} {row.outcome}"]
            for row in rows
        ],
        "title": [[on_button(title) + WIDE] for title in titles],
    }
    if labels:
        columns["label"] = [labels.get(row.id) for row in rows]
    if edited:
        columns["rule"] = [edited.get(row.id, []) for row in rows]
    columns["reason"] = [row.reason for row in rows]
    if refs is not None:
        columns["refers to"] = [", ".join(refs.get(row.id, ())) for row in rows]
    name, values = of_cutoff
    if name not in ("", DISTANCE):
        columns[name] = [values.get(row.id) for row in rows]
    columns |= {
        "distance": [row.distance for row in rows],
        "gap": [row.gap for row in rows],
    }
    if with_score:
        columns["rerank"] = [row.rerank_score for row in rows]
    columns |= {
        "layer": [row.layer for row in rows],
        "confidence": [row.confidence for row in rows],
        "similarity": [row.similarity for row in rows],
        "type": [row.type for row in rows],
    }
    return pd.DataFrame(columns)


def _columns(
    result: PoolResult, rows: Sequence[ChunkRow], shown: Sequence[ChunkRow], *, two_signs: bool
) -> dict[str, Any]:
    column = st.column_config
    dark = theme.is_dark()
    chips, marks = theme.chips(dark=dark), desk.chips(dark=dark)
    farthest = max((row.distance for row in rows), default=1.0) or 1.0
    value = column.NumberColumn(
        format="%.3f", width=176, help="What the cutoff compared. It is the axis of the curve."
    )
    return {compared(result, cut_of(result))[0]: value} | {
        "rank": column.NumberColumn(width=44, help="Rank by distance to the question."),
        "outcome": column.MultiselectColumn(
            width=94,
            help="What happened to the chunk.",
            options=list(chips),
            color=list(chips.values()),
        ),
        "title": column.ButtonColumn(
            width=188,
            help="Long titles keep what tells them apart. Click to open the chunk.",
            type="tertiary",
            alignment="left",
            key="rows-open",
            on_click=grid.open_clicked,
            args=("rows-open", NAME, "title", [row.id for row in shown]),
        ),
        "label": column.NumberColumn(
            width=52,
            format=f"{theme.LABELLED} %d",
            help="2: relevant, 1: partly, 0: not relevant.",
        ),
        "rule": column.MultiselectColumn(
            width=162 if two_signs else 92,
            options=list(marks),
            color=list(marks.values()),
            help="draft: not saved. changed: edited since the last export.",
        ),
        "type": column.TextColumn(width=68),
        "refers to": column.TextColumn(width=214, help="Chunk ids. Hidden chunks are not named."),
        "distance": column.ProgressColumn(
            format="%.3f",
            min_value=0.0,
            max_value=float(farthest),
            width=90,
            help="Distance to the question in the collection's space. Lower is closer.",
        ),
        "gap": column.NumberColumn(
            format="%.3f", width=50, help="Difference from the hit one rank above."
        ),
        "layer": column.TextColumn(width=82, help="The layer that kept or dropped the chunk."),
        "reason": column.TextColumn(
            width=330,
            help="What was compared. The tab Chunk shows it in full.",
        ),
        "similarity": column.NumberColumn(
            format="%.3f",
            width=72,
            help="1 − distance / 2 in an l2 collection, 1 − distance otherwise.",
        ),
        "confidence": column.TextColumn(width=78, help=_confidence(result)),
        "rerank": column.NumberColumn(
            format="%.3f", width=60, help="The reranker's score, 0 to 1."
        ),
    }


def _confidence(result: PoolResult) -> str:
    """What confidence each distance means with the current thresholds."""
    given = result.settings.confidence
    return (
        f"By distance: high below {numbers.distance(given.high_below)}, medium up to "
        f"{numbers.distance(given.medium_below)}, low beyond. A gap of at least "
        f"{numbers.distance(given.large_gap)} before a hit makes it low. The thresholds are "
        "settings and depend on the embedding model."
    )


def _ordered(rows: Sequence[ChunkRow], order: str | None) -> Sequence[ChunkRow]:
    return kept_first(rows) if order == KEPT_FIRST else rows


def _admitted(view: View) -> frozenset[str]:
    """The chunks whose rule is in the selected state; all if none is selected."""
    chosen = st.session_state.get("filter-rule")
    if not chosen:
        return frozenset(hit.id for hit in view.shown.hits)
    return frozenset(i for i, words in desk.states(view).items() if chosen in words)


def _matching(
    rows: Sequence[ChunkRow], wanted: str, admitted: Collection[str]
) -> tuple[ChunkRow, ...]:
    """The rows of `admitted` chunks that contain all words of `wanted`."""
    words = wanted.casefold().split()

    def text(row: ChunkRow) -> str:
        parts = (row.title, row.id, row.type, row.source, row.outcome, row.layer, row.reason)
        return " ".join(parts).casefold()

    return tuple(
        row
        for row in rows
        if row.id in admitted and (not words or all(word in text(row) for word in words))
    )
