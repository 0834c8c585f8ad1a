"""A map over one or two settings, for exploring by hand. Gathers every labelled question, replays them in the
background with many values, and plots the figures. A click sets the settings."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from ragfilter.evaluate.labelled_queries import Labels, labels_version
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.maps import NONE, OFFSET, Map, axes, by_factors, gathering_for, make, usual
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.recalibrate import RECORD
from ragfilter.evaluate.sweep import changes
from ragfilter.evaluate.tuning import recorded
from ragfilter.evaluate.wording import in_sample, unlabelled
from ragfilter.layers.registry import LAYERS
from ragfilter.layers.tuned_on import chose_strategy, differences, unchanged
from ragfilter.model import Pool
from ragfilter.settings.schema import Settings, field_info, fields
from ragfilter.text import numbers
from ragfilter.ui import jobs
from ragfilter.ui.jobs import Job
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.controls import value_text
from ragfilter.ui.look import elements, theme
from ragfilter.ui.look.elements import Fact
from ragfilter.ui.look.theme import CLEAR, LEGEND, THREE_DECIMALS, UNDIMMED, Ink
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import PageRun

Axes = tuple[str, str]
STOP = "Stops after the current question. Nothing is changed."
POOLS: CacheSpec[Mapping[str, Pool]] = CacheSpec(4)
"""The pools of every labelled question of a set."""


@dataclass(frozen=True, slots=True)
class ReplayedMap:
    """A map, with the labelled questions that it replays and their pools."""

    labels: Labels
    pools: Mapping[str, Pool]
    surface: Map


def replayed(page_run: PageRun, labels: Labels, axes: Axes, *, pressed: bool) -> ReplayedMap | None:
    """Wait for the map over these axes. It gathers all questions when its button is `pressed`, and later only replays
    them for other settings. None if there is no map, or if it was stopped or failed."""
    resources, settings = page_run.resources, page_run.settings
    backends, user = resources.backends(state.session().collection), state.user()
    pools_key, cache = _key(page_run, labels, axes), resources.cache(POOLS)
    # Leave out the settings of the axes and their record: a click on the map changes only those, so it stays valid.
    moving = {*axes, RECORD}
    others = tuple(settings.get(info.path) for info in fields() if info.path not in moving)
    key = ("map", pools_key, others, user, axes)

    def work(job: Job[ReplayedMap]) -> ReplayedMap:
        pools = cache.get(pools_key)
        if pools is None:
            wide = gathering_for(settings, *axes)
            pools = completed_pools(labels.labelled, wide, backends, user, progress=job.step)
            if not any(pool.failures for pool in pools.values()):
                cache.put(pools_key, pools)
        replaying = partial(job.step, what="Replaying")
        return ReplayedMap(labels, pools, make(pools, labels.qrels, settings, user, *axes, progress=replaying))

    def start() -> Job[ReplayedMap]:
        resources.jobs.stop(key)
        return resources.jobs.start(user, key, work)

    job: Job[ReplayedMap] | None = resources.jobs.find(key)
    if pressed or (job is None and cache.get(pools_key) is not None):
        job = start()
    grid_map = jobs.wait_for_result(job, "mapping", "Gathering", stop=STOP)
    if grid_map is not None and not grid_map.surface.holds(settings):
        # The grid was chosen around other values.
        grid_map = jobs.wait_for_result(start(), "mapping-anew", "Replaying", stop=STOP)
    if job is None:
        elements.empty(
            "No map yet.",
            "Map replays all labelled questions with many values of these settings. Click a point to set its values.",
        )
    elif grid_map is None and job.stop.is_set():
        elements.empty("The map was stopped.", "Press Map to start again from the beginning.")
    return grid_map


def _key(page_run: PageRun, labels: Labels, axes: Axes) -> Hashable:
    """The key of gathered pools: collection, labels, user, and the settings that decide how far a
    search goes and which hits get rerank scores. A click on the map changes only its axes."""
    settings = gathering_for(page_run.settings, *axes)
    names = [layer.name for layer in LAYERS]
    scored = settings.quality.enabled and settings.quality.reranker != "none"
    sections = ("retrieval", *(names[: names.index("quality") + 1] if scored else ()))
    paths = (info.path for info in fields() if info.section in sections and info.path not in axes)
    deciding = tuple(map(settings.get, paths))
    bench, collection, user = page_run.resources.bench, state.session().collection, state.user()
    return "pools", collection, bench.version_seen(collection, user), labels_version(labels), user, scored, deciding


HIGHEST = "#e0457b"
COLOURS = "Viridis"
SHOWN = {"f1": "F1", "f2": "F2", "precision": "precision", "recall": "recall"}


def heatmap(surface: Map, measure: str, current: int, best: int, *, dark: bool) -> dict[str, Any]:
    """The measure over both settings as square markers, because Streamlit reports no clicks on a Plotly heatmap; one
    below them fills their gaps. With one setting, a line with a point for each value."""
    ink = Ink(dark)
    flat = surface.figures[measure].ravel()
    two = surface.y is not None
    xs = [x for x in surface.xs for _ in surface.ys]
    ys = [*surface.ys] * len(surface.xs) if two else flat.tolist()
    places = surface.places
    square = {"symbol": "square", "size": 5, "color": flat[places].tolist(), "colorscale": COLOURS}
    colours = {
        "type": "heatmap",
        "name": SHOWN[measure],
        "x": surface.xs,
        "y": surface.ys,
        "hoverinfo": "skip",
        "z": surface.figures[measure].T.tolist(),
        "colorscale": COLOURS,
        "colorbar": {"thickness": 10, "title": {"text": SHOWN[measure]}, **THREE_DECIMALS},
    }
    data = [
        theme.trace(
            "markers" if two else "lines+markers",
            ((xs[at], ys[at]) for at in places),
            showlegend=False,
            marker=square if two else {"size": 7, "color": ink.kept},
            **_clickable(surface, places, measure, ink),
        ),
        *([colours] if two else []),
        *_marks(xs, ys, current, best, "#ffffff" if two else ink.text),
    ]
    y = (surface.y.label if surface.y is not None else SHOWN[measure]) or ""
    legend = LEGEND | {"bgcolor": "#4a5a5c" if two else CLEAR, "font": {"color": "#ffffff" if two else ink.text}}
    # A click anywhere on a square counts, not only near its middle.
    figure_layout = _layout(ink, surface.x.label, y) | {"hoverdistance": -1, "legend": legend}
    if not two:
        figure_layout["yaxis"] |= THREE_DECIMALS
    for axis, values in (("xaxis", surface.xs), ("yaxis", surface.ys)):
        if by_factors(values[0], values[-1]):
            figure_layout[axis]["type"] = "log"
    return {"data": data, "layout": figure_layout}


def front(surface: Map, current: int, best: int, *, dark: bool) -> dict[str, Any]:
    """Recall against context tokens for every setting, with the Pareto front."""
    ink = Ink(dark)
    recall, tokens = surface.figures["recall"].ravel(), surface.figures["tokens"].ravel()
    line = surface.front()
    data = [
        theme.trace(
            "markers",
            ((float(tokens[i]), float(recall[i])) for i in surface.places),
            name="every setting",
            hoverinfo="skip",
            marker={"size": 4, "color": ink.muted, "opacity": 0.35},
        ),
        theme.trace(
            "lines+markers",
            ((float(tokens[i]), float(recall[i])) for i in line),
            name="best recall for the tokens",
            marker={"size": 8, "color": ink.kept},
            **_clickable(surface, line, "recall", ink),
        ),
        *_marks(tokens.tolist(), recall.tolist(), current, best, ink.text),
    ]
    figure_layout = _layout(ink, "context tokens", "recall")
    figure_layout["yaxis"] |= THREE_DECIMALS
    return {"data": data, "layout": figure_layout}


def _clickable(surface: Map, places: Sequence[int], measure: str, ink: Ink) -> dict[str, Any]:
    """The places that points stand for, their hints, and the line through them."""
    text, line = [_hover_text(surface, place, measure) for place in places], {"color": ink.kept, "width": 1.5}
    return {"customdata": places, "hoverinfo": "text", "text": text, "line": line, **UNDIMMED}


def _layout(ink: Ink, x: str, y: str) -> dict[str, Any]:
    more = {"clickmode": "event+select", "showlegend": True, "height": 430, "legend": LEGEND}
    return ink.axes(x, y) | more


def _marks(xs: Sequence[float], ys: Sequence[float], current: int, best: int, colour: str) -> list[dict[str, Any]]:
    marks = (("current", current, "circle-open", colour), ("highest", best, "x-thin", HIGHEST))
    look = {"hoverinfo": "skip", "showlegend": True}
    return [
        theme.trace("markers", [(xs[at], ys[at])], name=name, marker=theme.marker(symbol, 16, ink, 2.4), **look)
        for name, at, symbol, ink in marks
    ]


def _values_text(surface: Map, place: int) -> str:
    return ", ".join(
        f"{field_info(path).label} {value_text(field_info(path), value)}"
        for path, value in surface.values(place).items()
    )


def _hover_text(surface: Map, place: int, measure: str) -> str:
    flat = surface.at(place)
    return (
        f"{_values_text(surface, place)}<br>{SHOWN[measure]} {flat[measure]:.3f}, recall "
        f"{flat['recall']:.3f}<br>{flat['kept']:.1f} chunks, {flat['tokens']:,.0f} tokens"
    )


def explore(page_run: PageRun, labels: Labels) -> None:
    """Draw the map of one or two settings."""
    with elements.row("map-bar", "bottom"):
        x, y, measure = _axes(page_run.settings)
        pressed = elements.button("Map", "map", icon="grid_on")
    mapped = replayed(page_run, labels, (x, y), pressed=pressed)
    if mapped is not None:
        warn(page_run.settings, labels)
        _draw_map(page_run.settings, mapped, measure)


def warn(settings: Settings, labels: Labels) -> None:
    """Warn if these labels chose the settings, which flatters the figures."""
    if learned := in_sample(settings, labels_version(labels), state.session().collection):
        elements.aside(learned)


def _axes(settings: Settings) -> tuple[str, str, str]:
    """Draw the choice of axes and measure, and return it."""
    paths = axes(settings)
    labels = {path: f"{path.partition('.')[0]}: {field_info(path).label}" for path in paths}
    first = elements.select("Horizontal axis", labels, "map-x", index=paths.index(usual(paths)), width=200)
    others = {NONE: "nothing"} | {path: label for path, label in labels.items() if path != first}
    start, about = [*others].index(OFFSET) if OFFSET in others else 0, "Choose “nothing” for a line chart."
    second = elements.select("Vertical axis", others, "map-y", index=start, width=200, help=about)
    measure = elements.select("Shown", SHOWN, "map-measure", width=130, help="The mean over the questions.")
    return first, second, measure


def _draw_map(settings: Settings, replayed_map: ReplayedMap, measure: str) -> None:
    surface = replayed_map.surface
    if not surface.places:
        elements.empty("The map has no point.", f"{surface.left_out}.")
        return
    current, best, dark = surface.nearest(settings), surface.highest(measure), theme.is_dark()
    with st.container(key="plots"):
        left, right = st.columns((1.15, 1), gap="medium")
    squares = heatmap(surface, measure, current, best, dark=dark)
    points = front(surface, current, best, dark=dark)
    for column, plot, key, alt in (
        (left, squares, "map-chart", f"{SHOWN[measure]} for every value of the chosen settings"),
        (right, points, "front-chart", "Recall against context tokens for every setting"),
    ):
        with column:
            choose = partial(_choose, key, replayed_map)
            theme.draw_plot(plot, key=key, on_select=choose, selection_mode="points", alt=alt)
    _draw_figures(replayed_map, measure, current, best)
    _draw_changes(replayed_map, settings)


def _draw_figures(replayed_map: ReplayedMap, measure: str, current: int, best: int) -> None:
    """Draw the figures of the current settings and the map's best, with a button for it."""
    surface = replayed_map.surface
    facts: list[Fact] = []
    for word, place in (("Current", current), ("Highest on these questions", best)):
        if place in surface.places:
            at = surface.at(place)
            size = f"{at['kept']:.1f} chunks, {numbers.token_count(round(at['tokens']))}"
            facts.append((f"{word}: {_values_text(surface, place)}", f"{SHOWN[measure]} {at[measure]:.3f}", size))
    elements.facts("Map", facts)
    if surface.left_out:
        elements.aside(f"Of {len(surface.xs) * len(surface.ys)} points, {surface.left_out}.")
    # For one only, because the two notes would hardly differ.
    place = current if current in surface.places else best
    if caveat := unlabelled(surface.at(place)):
        elements.aside(caveat)
    with elements.row("map-actions"):
        if current != best:
            elements.button("Use the highest", "map-best", _set, replayed_map, best, icon="check")
        elements.hint(
            "Click a square, or a point of the front, to set the sliders to its values. The highest was chosen on the "
            "questions that measured it, so expect less on others. Suggest settings measures on held-out questions."
        )


def _choose(key: str, replayed_map: ReplayedMap) -> None:
    picked: Any = st.session_state[key]["selection"]
    places = [point.get("customdata") for point in picked["points"]]
    place = next((p[0] if isinstance(p, list) else p for p in places if p is not None), None)
    if place is not None:
        _set(replayed_map, int(place))


def _set(replayed_map: ReplayedMap, place: int) -> None:
    """Set the sliders to a place on the map, and record the labels that it was chosen with."""
    before, values = state.settings(), replayed_map.surface.values(place)
    provenance, pools = Provenance.of(replayed_map.labels), replayed_map.pools.values()
    some = next(iter(pools))
    after = before.with_values(values)
    # Choices by other labels or earlier clicks stay on record while they are current.
    record = before.cutoff.tuned_on
    values_only = True
    if record is not None and not differences(record, some, before.quality):
        values = unchanged(record, after) | values
        values_only = not chose_strategy(record, after)
    with_record = recorded(after, pools, provenance, values, values_only=values_only)
    state.change_settings({**replayed_map.surface.values(place), RECORD: with_record.get(RECORD)})
    state.session().map_click = (state.session().collection, state.settings(), before)


def _draw_changes(replayed_map: ReplayedMap, settings: Settings) -> None:
    """Draw the questions that the last click changed, worst first. Clicking a row opens it."""
    collection, after, old = state.session().map_click or ("", None, None)
    if old is None or (collection, after) != (state.session().collection, settings):
        elements.empty(
            "These settings were not chosen on the map.",
            "Click the map to list the questions whose kept chunks change.",
        )
        return
    queries, every = replayed_map.labels.queries, len(replayed_map.pools)
    changed = changes(replayed_map.pools, replayed_map.labels.qrels, old, settings, state.user())
    if changed.empty:
        elements.empty(f"All {every} questions keep the same chunks as before.")
        return
    better, worse = (changed["gain"] > 0).sum(), (changed["gain"] < 0).sum()
    st.markdown(f"**{len(changed)} of {every} questions change** since the click: {better} better, {worse} worse.")
    names = {"id": "question", "gain": "ΔF1", "lost": "relevant lost", "won": "relevant won"}
    names |= {"before": "kept before", "after": "kept now"}
    questions, columns = changed["id"].map(queries), {"question": st.column_config.TextColumn(width=420)}
    table = changed.assign(id=questions)[[*names]].rename(columns=names)
    row = grid.draw_clickable(table, changed["id"], name="changed", columns=columns)
    if row is not None:
        state.open_inspect(questions[row], state.session().profile, state.session().changes)
