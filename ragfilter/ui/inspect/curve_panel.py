"""The curve on the page with its one line, and what tunes it: which ranks are shown, and the
settings that decide the cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import streamlit as st

from ragfilter.layers.cutoff import acting, cut_of
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import PoolResult
from ragfilter.report import ChunkRow, curve_points
from ragfilter.report.curve_points import Frame, Points
from ragfilter.report.thresholds import CutLine, change_to_keep, cut_line, limits
from ragfilter.settings.schema import field
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.inspect import curve_drag, curve_plot, label_buttons
from ragfilter.ui.kit import sidebar as settings_of
from ragfilter.ui.look import elements, html, plotting, theme
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.state import ALL, CUT, FIFTY, WINDOWS
from ragfilter.ui.session.visit import View

VIEW, TITLE_WIDTH = "tune", 30
BY_SCORE, BY_DISTANCE = "By score", "By distance"


def draw(view: View) -> None:
    """Draw the picture, and below it what is folded away."""
    result, session = view.shown, state.session()
    detail, line = cut_of(result), cut_line(result)
    if curve_points.reranked(detail) and st.session_state.get("curve-values") == BY_DISTANCE:
        # The cut is one of scores, which only few hits have.
        detail = line = None
    every = curve_points.place(result, view.rows, detail)
    every = replace(every, labels=label_buttons.grades(view))
    points = every.folded(session.chunk) if _folds() else every
    frame = _frame(view, points, line)
    tuned = (result, detail) if session.tuning and detail is not None else None
    with st.container(key="curve-box"):
        plot = curve_plot.plot(
            points, line, frame, tuned=tuned, chosen=session.chunk, dark=theme.is_dark()
        )
        plotting.draw(
            plot,
            key="curve",
            fixed=True,
            on_select=_selected,
            selection_mode="points",
            alt="Each hit by its place at the cutoff and the value compared there, with the limit",
        )
        summary = view.summary
        counts = f"{numbers.count(summary.kept)} kept of {numbers.count(summary.retrieved)}"
        nearest = change_to_keep(result, -1, view.under), change_to_keep(result, 1, view.under)
        names = telling_titles([row.title for row in view.rows], TITLE_WIDTH)
        titles = dict(zip((row.id for row in view.rows), names, strict=True))
        curve_drag.draw(
            result, points, detail, line, plot, nearest, titles,
            tuning=session.tuning, told=counts,
        )  # fmt: skip
    _draw_fold(every, points, len(view.rows))


def _folds() -> bool:
    return state.session().window == CUT


def _frame(view: View, points: Points, line: CutLine | None) -> Frame:
    """The ranges of the axes. They stay while the same list is cut and the cut can be seen, so that
    nothing moves below the pointer that releases a line."""
    session = state.session()
    last = ceil(max(points.x, default=1.0))
    shown_for = (
        view.asked, points.unit, points.entered, session.window, last if not _folds() else 0
    )  # fmt: skip
    if session.curve_frame is not None and session.curve_frame[0] == shown_for:
        held: Frame = session.curve_frame[1]
        kept = 0.0 if line is None else line.kept
        if held.window[0] <= kept + 0.5 <= held.window[1] or kept >= len(points.entered):
            return held
    window = _window(last) or curve_points.around_cut(view.shown, points, cut_of(view.shown))
    frame = curve_points.framed(points, window, line)
    session.curve_frame = shown_for, frame
    return frame


def _draw_fold(every: Points, shown: Points, count: int) -> None:
    """Draw what is folded away, with the button that shows it; or the one that folds it."""
    folded, help_text = [row for row in every.rows if row not in shown.rows], None
    if folded:
        by = Counter("their rule" if row.layer == "query_must" else row.layer for row in folded)
        help_text = "Dropped: " + " and ".join(
            f"{numbers.count(n)} by {name}" for name, n in by.items()
        )
        label = f"{numbers.count(len(folded))} dropped earlier · show all {count}"
    elif not _folds() and every.entered:
        label = "Fold away what was dropped before the cut"
    else:
        return
    st.button(
        label, key="fold", help=help_text, type="tertiary", on_click=state.put,
        args=(ALL if folded else CUT, "window"),
    )  # fmt: skip


def controls(view: View) -> None:
    """Draw what tunes the cut: its settings and limits, the ranks shown and the legend."""
    result = view.shown
    draw_settings(result, dict(view.summary.strategies))
    with st.container(key="curve-bar", horizontal=True, vertical_alignment="center", gap="small"):
        scored = curve_points.reranked(cut_of(result))
        if scored:
            elements.choice(
                "Values", (BY_SCORE, BY_DISTANCE),
                "By score: what the cutoff compared after reranking. By distance: every hit.",
                key="curve-values", default=BY_SCORE,
            )  # fmt: skip
        by_distance = scored and st.session_state.get("curve-values") == BY_DISTANCE
        points = curve_points.place(result, view.rows, None if by_distance else cut_of(result))
        _ranges(len(points.x))
        html.draw(f'<ul class="rf-legend">{_legend(points.rows)}</ul>', width="content")


def _ranges(count: int) -> None:
    """Draw the choice of ranks. It is stored in the session, so sliders do not move the view."""
    everything = f"All {count}"
    st.segmented_control(
        "Shown",
        WINDOWS,
        default=state.session().window,
        required=True,
        format_func=lambda name: everything if name == ALL else name,
        label_visibility="collapsed",
        **widget.of("window-box", state.session().window, state.put, "window", labels=everything),
    )


def _window(last: int) -> tuple[float, float] | None:
    """The first and last x shown, or None for a window around the cut."""
    if _folds():
        return None
    return 0.3, (min(50, last) if state.session().window == FIFTY else last) + 0.7


def _legend(rows: Sequence[ChunkRow]) -> str:
    """The legend: every sign of the curve with its meaning and count, in the order of the
    layers."""
    order: list[str] = [*theme.OUTCOMES, *theme.LAYERS]
    counts = Counter(
        (
            row.layer if row.outcome == "dropped" else row.outcome,
            theme.mark(row.outcome, row.layer, row.setting),
        )
        for row in rows
    )
    items = []
    for (name, mark), n in sorted(counts.items(), key=lambda item: order.index(item[0][0])):
        sign = html.sign(mark, f"layer-{name}" if name in theme.LAYERS else name)
        words = f"{name}, {mark.about}" if mark.about else name
        items.append(f"<li>{sign}{numbers.count(n)} {html.text(words)}</li>")
    return "".join(items)


def _selected() -> None:
    picked: Any = st.session_state["curve"]["selection"]
    if picked["points"]:
        data = picked["points"][0].get("customdata")
        state.open_chunk(data[0] if data else None)


def cut_settings(result: PoolResult) -> tuple[str, ...]:
    """The settings that currently decide where the curve is cut."""
    settings = acting(result)
    cutoff = layer("cutoff")
    if cutoff.enabled(settings):
        used = cutoff.used(settings)
        return tuple(f"cutoff.{name}" for name in cutoff.first if name in used)
    return ("retrieval.k",) if layer("top_k").enabled(settings) else ()


def draw_settings(result: PoolResult, kept: Mapping[str, int]) -> None:
    """Draw the settings in one row, which keeps its height if there are none. `kept` is what each
    strategy would keep."""
    shown = cut_settings(result)
    with st.container(key="tune", horizontal=True, vertical_alignment="top", gap="small"):
        own = state.own()
        for path in shown:
            settings_of.draw_setting(field(path), result.settings, own, view=VIEW, kept=kept)
        if not shown:
            html.draw(
                '<p class="rf-hint">The cutoff is off, and the judge decides how many stay. Switch '
                "Cutoff on in the sidebar to tune a threshold here.</p>"
            )
    html.draw(f'<ul class="rf-limits" aria-label="Limits in force">{applied_limits(result)}</ul>')


def applied_limits(result: PoolResult) -> str:
    """The limit that decided how many stay, the other limits that applied, then those not
    reached."""
    every, detail = limits(result), cut_of(result)
    bound = [each.words for each in reversed(every) if each.bound]
    if detail is not None and detail.cut.limit is not None:
        cliff = strategy(detail.cut.strategy).cliff(result.settings.cutoff)
        limit = numbers.distance(detail.cut.limit)
        bound.insert(0, f"{cliff}: {detail.value_name} ≤ {limit}")
    items = [f"<li><b>{html.text(words)}</b></li>" for words in bound[:1]]
    items += [f"<li>{html.text(words)}</li>" for words in bound[1:]]
    chosen = result.settings.cutoff.strategy
    if detail is not None and detail.cut.strategy != chosen:
        items.append(f"<li>{html.text(f'{chosen} is chosen, but {detail.fallback_reason}')}.</li>")
    items += [f"<li>{html.text(each.words)}</li>" for each in every if not each.bound]
    return "".join(items)
