"""The Tune page: settings suggested by cross-validation, and a map for exploring by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.evaluate.labelled_queries import Labels, labels_version
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.maps import NONE, OFFSET, axes, usual
from ragfilter.evaluate.recalibrate import RECORD
from ragfilter.evaluate.sweep import changes
from ragfilter.evaluate.tune import recorded
from ragfilter.evaluate.wording import about_labels, in_sample, unlabelled
from ragfilter.layers.origin import chose_strategy, unchanged
from ragfilter.layers.strategies.calibrated import differences
from ragfilter.settings.schema import Settings, field
from ragfilter.text import numbers
from ragfilter.ui.kit import empty, grid, problems
from ragfilter.ui.kit.runs import measuring
from ragfilter.ui.kit.runs.measuring import open_inspect
from ragfilter.ui.kit.sidebar import value_text
from ragfilter.ui.look import html, theme
from ragfilter.ui.look.html import Fact
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import Visit
from ragfilter.ui.tune import suggestion, tuning_map
from ragfilter.ui.tune.tuning_map import ReplayedMap


@problems.shown(retry=True)
def draw(visit: Visit) -> None:
    """Draw the bar and the suggestion, and below it the map for exploring by hand."""
    if not visit.ready:
        empty.draw(visit, None)
        return
    problems.incomplete(visit.incomplete)
    query_set = measuring.read(visit)
    labels = query_set.given
    with st.container(key="tune-bar", horizontal=True, vertical_alignment="bottom", gap="small"):
        measuring.choose(query_set)
        wish = suggestion.ask(visit, labels)
    measuring.explain(query_set)
    if labels is None:
        if st.button("Label questions", key="tune-label", icon=":material/edit_note:"):
            state.session().labelling = True
            st.switch_page("pages/evaluate.py")
        return
    if visit.settings.judge.enabled:
        html.empty(
            "The judge is on, and tuning cannot replay LLM answers.",
            "Switch it off to tune the rest.",
        )
        return
    for caveat in about_labels(labels):
        html.aside(caveat)
    if not suggestion.draw(visit, labels, wish, query_set.name):
        html.empty(
            f"{numbers.counted(len(labels.labelled), 'labelled question')} can suggest settings.",
            "They come with their gain on other questions, what changes and what "
            "is lost. " + ("It takes minutes, less without reranking." if wish.rerank else ""),
        )
        _warn(visit.settings, labels)
    with st.expander("Explore by hand", key="by-hand", on_change="rerun") as by_hand:
        if by_hand.open:
            _explore(visit, labels)


def _explore(visit: Visit, labels: Labels) -> None:
    """Draw the map of one or two settings."""
    with st.container(key="map-bar", horizontal=True, vertical_alignment="bottom", gap="small"):
        x, y, measure = _axes(visit.settings)
        pressed = st.button("Map", key="map", icon=":material/grid_on:")
    replayed = tuning_map.replayed(visit, labels, (x, y), pressed=pressed)
    if replayed is not None:
        _warn(visit.settings, labels)
        _draw_map(visit.settings, replayed, measure)


def _warn(settings: Settings, labels: Labels) -> None:
    """Say if these labels chose the settings, so that figures flatter."""
    learned = in_sample(settings, labels_version(labels), state.session().collection)
    if learned:
        html.aside(learned)


def _axes(settings: Settings) -> tuple[str, str, str]:
    """Draw which settings the map covers and which measure it shows."""
    paths = axes(settings)
    first = st.selectbox(
        "Horizontal axis", paths, index=paths.index(usual(paths)), key="map-x",
        persist_state="session", format_func=_label, width=200,
    )  # fmt: skip
    others = [NONE, *(path for path in paths if path != first)]
    second = st.selectbox(
        "Vertical axis", others, index=others.index(OFFSET) if OFFSET in others else 0, key="map-y",
        persist_state="session", format_func=lambda path: _label(path) if path else "nothing",
        width=200, help="Choose “nothing” for a line chart.",
    )  # fmt: skip
    measure = st.selectbox(
        "Shown", list(tuning_map.SHOWN), key="map-measure", persist_state="session", width=130,
        format_func=lambda name: tuning_map.SHOWN[name], help="The mean over the questions.",
    )  # fmt: skip
    return first or paths[0], second or NONE, measure or "f1"


def _label(path: str) -> str:
    return f"{path.partition('.')[0]}: {field(path).label}"


def _draw_map(settings: Settings, replayed: ReplayedMap, measure: str) -> None:
    surface = replayed.surface
    if not surface.places:
        html.empty("The map has no point.", f"{surface.left_out}.")
        return
    here, best = surface.nearest(settings), surface.highest(measure)
    old = _before(settings)
    before = None if old is None else surface.place_of(old, settings)
    before = None if before == here else before
    dark = theme.is_dark()
    with st.container(key="plots"):
        left, right = st.columns((1.15, 1), gap="medium")
    with left:
        theme.draw_plot(
            tuning_map.heatmap(surface, measure, here, best, before, dark=dark), key="map-chart",
            on_select=lambda: _choose("map-chart", replayed), selection_mode="points",
            alt=f"{tuning_map.SHOWN[measure]} for every value of the chosen settings",
        )  # fmt: skip
    with right:
        theme.draw_plot(
            tuning_map.front(surface, here, best, before, dark=dark), key="front-chart",
            on_select=lambda: _choose("front-chart", replayed), selection_mode="points",
            alt="Recall against context tokens of every setting",
        )  # fmt: skip
    _draw_figures(replayed, measure, here, best)
    _draw_changes(replayed, settings)


def _draw_figures(replayed: ReplayedMap, measure: str, here: int, best: int) -> None:
    """Draw the figures of the current settings and of the map's best place, with a button to go
    there."""
    surface = replayed.surface
    marked = (("Current", here), ("Highest on these questions", best))
    places = [(word, place) for word, place in marked if place in surface.places]
    facts: list[Fact] = []
    for word, place in places:
        at = surface.at(place)
        set_to = ", ".join(f"{field(path).label} {value_text(field(path), value)}"
                           for path, value in surface.values(place).items())  # fmt: skip
        size = f"{at['kept']:.1f} chunks, {numbers.tokens(round(at['tokens']))}"
        facts.append((f"{word}: {set_to}", f"{tuning_map.SHOWN[measure]} {at[measure]:.3f}", size))
    html.facts("Map", facts)
    if surface.left_out:
        html.aside(f"Of {len(surface.xs) * len(surface.ys)} points, {surface.left_out}.")
    # Of the first one only: the two notes would hardly differ.
    for word, place in places[:1]:
        at = surface.at(place)
        caveat = unlabelled(at["kept"], at["unlabelled"], at["f1"], at["f1_most"])
        if caveat:
            html.aside(f"{word}: {caveat[0].lower()}{caveat[1:]}")
    with st.container(key="map-actions", horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Use the highest",
            key="map-best",
            icon=":material/check:",
            on_click=_set,
            args=(replayed, best),
            disabled=here == best,
        )
        html.hint(
            "Click a square, or a point of the front, to set the sliders to its values. The "
            "highest is chosen and measured on these same questions, so it will be lower on "
            "others; Suggest settings measures on held-out questions."
        )


def _choose(key: str, replayed: ReplayedMap) -> None:
    picked: Any = st.session_state[key]["selection"]
    places = [point.get("customdata") for point in picked["points"]]
    place = next((p[0] if isinstance(p, list) else p for p in places if p is not None), None)
    if place is not None:
        _set(replayed, int(place))


def _set(replayed: ReplayedMap, place: int) -> None:
    """Set the sliders to a place on the map, and record the labels that it was chosen on."""
    before, values = state.settings(), replayed.surface.values(place)
    provenance, pools = Provenance.of(replayed.labels), replayed.pools.values()
    some = next(iter(pools))
    after = before.with_values(values)
    # What other labels or an earlier click chose, and is still current, stays on record.
    record = before.cutoff.tuned_on
    values_only = True
    if record is not None and not differences(record, some, before.quality):
        values = unchanged(record, after) | values
        values_only = not chose_strategy(record, after)
    there = recorded(after, pools, provenance, values, values_only=values_only)
    state.change({**replayed.surface.values(place), RECORD: there.get(RECORD)})
    state.session().map_click = (state.session().collection, state.settings(), before)


def _before(settings: Settings) -> Settings | None:
    """The settings that the last click replaced, if it led to these settings of this collection."""
    collection, new, old = state.session().map_click or ("", None, None)
    return old if (collection, new) == (state.session().collection, settings) else None


def _draw_changes(replayed: ReplayedMap, settings: Settings) -> None:
    """Draw the questions that keep other chunks than before the last click, worst first. A click on
    a row opens the question."""
    old = _before(settings)
    if old is None:
        html.empty(
            "No click led to these settings.",
            "Click the map to list the questions whose kept chunks change.",
        )
        return
    queries, every = replayed.labels.queries, len(replayed.pools)
    changed = changes(replayed.pools, replayed.labels.qrels, old, settings, state.user())
    if not changed:
        html.empty(f"All {every} questions keep the same chunks as before.")
        return
    better = sum(each.gain > 0 for each in changed)
    worse = sum(each.gain < 0 for each in changed)
    st.markdown(
        f"**{len(changed)} of {every} questions change** since the click: {better} better, {worse} "
        "worse."
    )
    table = {
        "question": [queries[each.id] for each in changed],
        "ΔF1": [each.gain for each in changed],
        "relevant lost": [each.lost for each in changed],
        "relevant won": [each.won for each in changed],
        "kept before": [each.before for each in changed],
        "kept now": [each.after for each in changed],
    }
    row = grid.picked(
        pd.DataFrame(table),
        (each.id for each in changed),
        name="changed",
        columns={
            "question": st.column_config.TextColumn(width=420),
            "ΔF1": st.column_config.NumberColumn(format="%+.3f"),
        },
    )
    if row is not None:
        open_inspect(queries[changed[row].id], state.session().profile, state.session().changes)
