"""The questions that a click on the map changes: what each keeps before and after."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.evaluate.changes import HitChange, changes
from ragfilter.settings.schema import Settings
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.runs.opening import inspect
from ragfilter.ui.look import say
from ragfilter.ui.session import state
from ragfilter.ui.tune.gathered import Gathered


def remember(old: Settings, new: Settings) -> None:
    """Remember the settings before and after a click."""
    st.session_state.clicked = (state.session().collection, new, old)


def before(settings: Settings) -> Settings | None:
    """The settings that the last click replaced, if it led to these settings of this collection."""
    collection, new, old = st.session_state.get("clicked", (None, None, None))
    return old if (collection, new) == (state.session().collection, settings) else None


def draw(found: Gathered, settings: Settings) -> None:
    """Draw the questions that keep other chunks than before the last click, worst first. A click on
    a row opens the question."""
    old = before(settings)
    if old is None:
        say.empty(
            "No click led to these settings.",
            "Click the map to list the questions whose kept chunks change.",
        )
        return
    made = changes(found.pools, found.labels.qrels, old, settings, state.user())
    every = len(found.pools)
    if not made:
        say.empty(f"All {every} questions keep the same chunks as before.")
        return
    better = sum(each.gain > 0 for each in made)
    worse = sum(each.gain < 0 for each in made)
    st.markdown(
        f"**{len(made)} of {every} questions change** since the click: {better} better, {worse} "
        "worse."
    )
    row = grid.picked(
        pd.DataFrame([_row(found.labels.queries[each.id], each) for each in made]),
        (each.id for each in made),
        name="changed",
        columns={
            "question": st.column_config.TextColumn(width=420),
            "ΔF1": st.column_config.NumberColumn(format="%+.3f"),
        },
    )
    if row is not None:
        query = found.labels.queries[made[row].id]
        inspect(query, state.session().profile, state.session().changes)


def _row(query: str, each: HitChange) -> dict[str, Any]:
    return {
        "question": query,
        "ΔF1": each.gain,
        "relevant lost": each.lost,
        "relevant won": each.won,
        "kept before": each.before,
        "kept now": each.after,
    }
