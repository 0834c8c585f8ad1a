"""The curve on the page: which ranks are shown, and what a click does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import Any

import streamlit as st

from ragfilter.layers.cutoff import cut_of
from ragfilter.report import ChunkRow
from ragfilter.text import numbers
from ragfilter.ui.inspect.curve import drag, tune
from ragfilter.ui.inspect.curve import plot as curve
from ragfilter.ui.inspect.curve import points as curve_points
from ragfilter.ui.look import elements, html, plotting, theme
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.state import ALL, CUT, FIFTY, WINDOWS
from ragfilter.ui.session.visit import View

BY_SCORE, BY_DISTANCE = "By score", "By distance"


def draw(view: View) -> None:
    """The curve with its header."""
    result = view.shown
    bar = st.container(key="curve-bar", horizontal=True, vertical_alignment="center", gap="small")
    tuning = st.container()
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
        plot = curve.plot(result, points, detail, window, chosen=chosen, dark=theme.is_dark())
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
        drag.draw(result, points, detail, plot, told=told)
    with bar:
        if scored:
            elements.choice("Values", (BY_SCORE, BY_DISTANCE), key="curve-values", default=BY_SCORE)
        _ranges(len(points.x), last, window, scored=scored)
        html.draw(f'<ul class="rf-legend">{_legend(points.rows)}</ul>', width="content")
    with tuning:
        tune.draw(result)


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
    for outcome, layer in order:
        n = counts[(outcome, layer)]
        if n:
            sign = html.outcome_sign(outcome, layer)
            items.append(f"<li>{sign}{numbers.count(n)} {html.text(layer or outcome)}</li>")
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
