"""The curve on the page: which ranks are shown, what a click does, and the most important settings
beside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import Any

import streamlit as st

from ragfilter.layers.cutoff import acting, cut_of
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import PoolResult
from ragfilter.report import ChunkRow
from ragfilter.report.thresholds import first_step, limits
from ragfilter.settings.schema import field
from ragfilter.text import numbers
from ragfilter.ui.inspect import curve_drag, curve_plot, curve_points
from ragfilter.ui.kit import controls
from ragfilter.ui.look import elements, html, plotting, theme
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.state import ALL, CUT, FIFTY, WINDOWS
from ragfilter.ui.session.visit import View

BY_SCORE, BY_DISTANCE = "By score", "By distance"


def draw(view: View) -> None:
    """The curve with its header."""
    result = view.shown
    bar = st.container(key="curve-bar", horizontal=True, vertical_alignment="center", gap="small")
    detail = cut_of(result)
    scored = curve_points.reranked(detail)
    if scored and st.session_state.get("curve-values") == BY_DISTANCE:
        # The cut is one of scores, which only few hits have.
        detail = None
    points = curve_points.place(result, view.rows, detail)
    last = ceil(max(points.x, default=1.0))
    window = _window(last) or curve_points.around_cut(result, points, detail)
    # Drawn before the parts above it, because the user is waiting for it.
    # As high as the panel beside it, and at least as high as the plot.
    with st.container(key="curve-box", height="stretch"):
        chosen = state.session().chunk
        plot = curve_plot.plot(result, points, detail, window, chosen=chosen, dark=theme.is_dark())
        plotting.draw(
            plot,
            key="curve",
            fixed=True,
            height="stretch",
            on_select=_selected,
            selection_mode="points",
            alt="Distance of each hit by its place at the cutoff, with the cut",
        )
        summary = view.summary
        told = f"{numbers.count(summary.kept)} kept of {numbers.count(summary.retrieved)}"
        curve_drag.draw(result, points, detail, plot, told=told)
    if not state.session().tuning:
        return
    with bar:
        if scored:
            elements.choice("Values", (BY_SCORE, BY_DISTANCE), key="curve-values", default=BY_SCORE)
        _ranges(len(points.x), last, window, scored=scored)
        html.draw(f'<ul class="rf-legend">{_legend(points.rows)}</ul>', width="content")


def _ranges(count: int, last: int, window: tuple[float, float], *, scored: bool) -> None:
    """Draw the choice of ranks: one of three ranges, or any. It is stored in the session, so
    sliders do not move the view."""
    everything = f"All {count}"
    st.segmented_control(
        "Shown",
        WINDOWS,
        default=state.session().window,
        format_func=lambda name: everything if name == ALL else name,
        label_visibility="collapsed",
        **widget.of("window-box", state.session().window, _choose, labels=everything),
    )
    now = (max(1, round(window[0] + 0.5)), min(last, round(window[1] - 0.5)))
    if last > 1:
        with st.popover(
            "Ranks",
            key="zoom-box",
            icon=":material/zoom_in:",
            type="tertiary",
            help="Choose the first and last rank.",
        ):
            # The key contains the value: a popover draws late and would otherwise start with the
            # whole range.
            key = f"zoom-{now[0]}-{now[1]}"
            with st.container(key="zoom"):
                st.slider(
                    "Ranks shown",
                    1,
                    last,
                    now,
                    key=key,
                    on_change=_zoom,
                    args=(key,),
                    help="First and last rank on the curve.",
                )
    scores = "By score: the values that the cutoff used after reranking. By distance: every hit. "
    elements.hint(
        f"{scores if scored else ''}"
        "Choose which ranks the curve shows. Click a point to open its chunk."
    )


def _window(last: int) -> tuple[float, float] | None:
    """The first and last x shown, or None for a window around the cut."""
    zoom = state.session().zoom
    if zoom:
        return min(zoom[0], last) - 0.7, min(zoom[1], last) + 0.7
    shown = state.session().window
    if shown not in (FIFTY, ALL):
        return None
    return 0.3, (min(50, last) if shown == FIFTY else last) + 0.7


def _legend(rows: Sequence[ChunkRow]) -> str:
    """The legend: every sign of the curve with its meaning and count, in the order of the
    layers."""
    counts: Counter[tuple[str, str]] = Counter(
        (row.outcome, row.layer if row.outcome == "dropped" else "") for row in rows
    )
    order: list[tuple[str, str]] = [
        *((name, "") for name in theme.OUTCOMES),
        *(("dropped", n) for n in theme.LAYERS),
    ]
    items = []
    for outcome, dropped_by in order:
        n = counts[(outcome, dropped_by)]
        if n:
            sign = html.outcome_sign(outcome, dropped_by)
            items.append(f"<li>{sign}{numbers.count(n)} {html.text(dropped_by or outcome)}</li>")
    return "".join(items)


def _choose(window: str | None) -> None:
    state.session().zoom = None
    state.session().window = window or CUT


def _zoom(key: str) -> None:
    low, high = st.session_state[key]
    if low < high:
        state.session().zoom = (low, high)
        state.session().window = None


def _selected() -> None:
    picked: Any = st.session_state["curve"]["selection"]
    if picked["points"]:
        data = picked["points"][0].get("customdata")
        state.open_chunk(data[0] if data else None)


VIEW = "tune"
SHORT = {"cutoff.max_results": "k", "retrieval.k": "k", "cutoff.gap_threshold": "Min gap",
         "cutoff.distance_offset": "Offset", "cutoff.skip_first": "Skip first"}  # fmt: skip


def cut_settings(result: PoolResult) -> tuple[str, ...]:
    """The settings that currently decide where the curve is cut."""
    settings = acting(result)
    cutoff = layer("cutoff")
    if cutoff.enabled(settings):
        used = cutoff.used(settings)
        return tuple(f"cutoff.{name}" for name in cutoff.first if name in used)
    return ("retrieval.k",) if layer("top_k").enabled(settings) else ()


def draw_settings(result: PoolResult) -> None:
    """Draw the settings in one row, which keeps its height if there are none."""
    shown = cut_settings(result)
    with st.container(key="tune", horizontal=True, vertical_alignment="top", gap="small"):
        own = state.own()
        for path in shown:
            controls.draw_setting(
                field(path), result.settings, own, view=VIEW, label=SHORT.get(path, "")
            )
        if not shown:
            html.draw(
                '<p class="rf-hint">The cutoff is off, and the judge decides how many stay. Switch '
                "Cutoff on in the sidebar to tune a threshold here.</p>"
            )
    html.draw(f'<ul class="rf-limits" aria-label="Limits in force">{applied_limits(result)}</ul>')


def applied_limits(result: PoolResult) -> str:
    """The limit that decided how many stay, the other limits that applied, then those not
    reached."""
    every = limits(result)
    bound = [each.words for each in reversed(every) if each.bound]
    items = [f"<li><b>{html.text(words)}</b></li>" for words in bound[:1]]
    items += [f"<li>{html.text(words)}</li>" for words in bound[1:]]
    chosen, detail = result.settings.cutoff.strategy, cut_of(result)
    if detail is not None and detail.cut.strategy != chosen:
        name = strategy(chosen).title or chosen
        items.append(f"<li>{html.text(f'{name} is chosen, but {detail.instead}')}.</li>")
    tall = first_step(result)
    if tall is not None:
        items.append(
            f"<li>The largest gap, {numbers.distance(tall)}, comes first. It is ignored while "
            "<i>Skip the first step</i> is on.</li>"
        )
    items += [f"<li>{html.text(each.words)}</li>" for each in every if not each.bound]
    return "".join(items)
