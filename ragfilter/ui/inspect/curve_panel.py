"""The curve on the page, with its lines as handles and the controls that adjust it: the ranks shown,
and the settings that decide the cut.

The browser drags the lines and looks up how many chunks each position would keep, in steps that come with the picture.
Keys also move the lines, and step from chunk to chunk. Releasing a line changes the setting, as any other control does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from ragfilter.engine.whatif import SettingChange, change_by_one_hit, kept_by_value
from ragfilter.layers.cutoff import cutoff_detail, distances_by_score, settings_that_cut
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies.strategy import strategy
from ragfilter.model import CutoffDetail, PoolResult
from ragfilter.results.rows import ChunkRow
from ragfilter.results.thresholds import CutLine, compared, cut_line, cut_name, limits
from ragfilter.settings.schema import field_info
from ragfilter.stores.label_book import GRADES
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.inspect import curve_plot
from ragfilter.ui.inspect.curve_plot import Points
from ragfilter.ui.kit import controls
from ragfilter.ui.look import elements, theme
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import View
from ragfilter.ui.session.state import ALL, CUT, AxisRanges

PREFIX, TITLE_WIDTH = "cut", 30
KEY, SECOND = "drag", "second-score"
# Announces the count in an element that persists, because a redrawn one is not read aloud.
HTML = '<p class="rf-unseen" aria-live="polite"></p><div class="rf-drag"></div>'


def draw(view: View) -> None:
    """Draw the picture, and below it the buttons that keep one chunk fewer or more, and show folded hits."""
    result, session = view.shown, state.session()
    detail, line = cutoff_detail(result), cut_line(result)
    every = replace(curve_plot.place(result, view.rows, detail), grades=view.grades)
    points = every.folded(session.chunk) if session.window == CUT else every
    name = st.session_state.get(SECOND)
    others = other_scores(result) if name and session.cut_controls else {}
    ranges = _axis_ranges(view, points, line)
    short = telling_titles([row.title for row in view.rows], TITLE_WIDTH)
    titles = {
        row.id: title if row.outcome in ("kept", "dropped") else f"{title}, {row.outcome}"
        for row, title in zip(view.rows, short, strict=True)
    }
    steps_of = (result, detail) if session.cut_controls and detail is not None else None
    second = (name, others[name]) if name in others else None
    with st.container(key="curve-box"):
        plot = curve_plot.plot(
            points, line, ranges, steps_of=steps_of, second=second, chosen=session.chunk, dark=theme.is_dark()
        )
        alt = "Each hit by its place at the cutoff and the value compared there, with the limit"
        theme.draw_plot(plot, key="curve", fixed=True, on_select=_selected, selection_mode="points", alt=alt)
        summary, ids = view.summary, [row.id for row in points.rows]
        data = overlay(result, points, plot, titles, session.chunk, with_controls=session.cut_controls) | {
            "told": f"{numbers.count(summary.kept)} kept of {numbers.count(summary.retrieved)}",
            # The browser drops its own position after each move, even if undo restores the same picture.
            "moves": session.drag_moves,
        }
        elements.mount(
            "inspect/curve_lines.js",
            HTML,
            key=KEY,
            data=data,
            height="stretch",
            on_moved_change=_moved,
            on_walked_change=lambda: state.open_chunk(ids[st.session_state[KEY].walked]),
        )
    with elements.row("curve-foot"):
        for label, key, by in (("−1 chunk", "keep-less", -1), ("+1 chunk", "keep-more", 1)) if detail else ():
            change = change_by_one_hit(result, by, view.under)
            values = {} if change is None else {change.path: change.new}
            about = "No limit of this strategy does that." if change is None else _effect(change, titles)
            elements.button(label, key, state.change_settings, values, disabled=change is None, about=about)
        _draw_fold(every, beyond=max(points.x, default=0) > ranges.window[1])


def _axis_ranges(view: View, points: Points, line: CutLine | None) -> AxisRanges:
    """The ranges of the axes. They stay while the same list is cut and the cut is visible, so that
    nothing moves under the pointer that releases a line."""
    session = state.session()
    last = 0 if session.window == CUT else ceil(max(points.x, default=1.0))
    shown_for = (view.asked, points.unit, points.entered, session.window, last)
    if session.axis_ranges is not None and session.axis_ranges[0] == shown_for:
        ranges = session.axis_ranges[1]
        kept = 0.0 if line is None else line.kept
        if ranges.window[0] <= kept + 0.5 <= ranges.window[1] or kept >= len(points.entered):
            return ranges
    window = (0.3, last + 0.7) if last else curve_plot.around_cut(view.shown, points, cutoff_detail(view.shown))
    ranges = curve_plot.axis_ranges(points, window, line)
    session.axis_ranges = shown_for, ranges
    return ranges


def _effect(change: SettingChange, titles: Mapping[str, str]) -> str:
    """What a button changes, and which chunks it keeps and drops."""

    def named(ids: Sequence[str]) -> str:
        return numbers.first_of([f"“{literal(titles.get(i, i))}”" for i in ids], 2)

    moved = (("keeps", change.came), ("drops", change.went))
    return f"{change.words} {' and '.join(f'{verb} {named(ids)}' for verb, ids in moved if ids)}."


def _draw_fold(every: Points, *, beyond: bool) -> None:
    """Draw the button that shows hits dropped before the cutoff or `beyond` the last rank, or folds them."""
    if state.session().window != CUT:
        elements.button("Show the ranks around the cut", "fold", state.set_field, CUT, "window", type="tertiary")
        return
    # Labelled chunks and the open one count too, although the curve shows them, so that the layers' counts agree.
    earlier = [row for row in every.rows if every.entered and not row.kept and row.id not in every.entered]
    if not (earlier or beyond):
        return
    by = Counter("their rule" if row.layer == "query_must" else row.layer for row in earlier)
    about = " and ".join(f"{numbers.count(n)} by {name}" for name, n in by.items()) or None
    show = f"{numbers.count(len(earlier))} dropped earlier · show" if earlier else "Show"
    label = f"{show} all {len(every.rows)}"
    elements.button(label, "fold", state.set_field, ALL, "window", type="tertiary", about=about)


def draw_controls(view: View) -> None:
    """Draw the controls of the cut: its settings and limits, a second curve and the legend."""
    result, start = view.shown, state.reset_target()
    with elements.row("cut-controls", "top"):
        paths = _cut_settings(result)
        for path in paths:
            controls.draw_setting(
                field_info(path), result.settings, start, prefix=PREFIX, kept=dict(view.summary.strategies)
            )
        if not paths:
            elements.aside(
                "The cutoff is off, and the judge decides how many stay. Switch Cutoff on in the sidebar to adjust a "
                "threshold here."
            )
    elements.draw(f'<ul class="rf-limits" aria-label="Current limits">{_limits(result)}</ul>')
    with elements.row("curve-bar"):
        if others := other_scores(result):
            st.selectbox(
                "Second curve",
                list(others),
                None,
                key=SECOND,
                persist_state="session",
                width=170,
                placeholder="No second curve",
                label_visibility="collapsed",
                help="Draws the hits by another score, lower for nearer.",
            )
        points = curve_plot.place(result, view.rows, cutoff_detail(result))
        elements.draw(f'<ul class="rf-legend">{_legend(points.rows)}</ul>', width="content")


def other_scores(result: PoolResult) -> dict[str, dict[str, float]]:
    """The scores that the curve does not draw, by name: each hit's distance by id."""
    _, drawn = compared(result, cutoff_detail(result))
    names = dict.fromkeys(name for hit in result.hits for name in hit.scores)
    pool, settings = result.pool, result.settings
    every = {name: distances_by_score(result.hits, name, pool, settings) for name in ("dense", "rerank", *names)}
    return {name: values for name, values in every.items() if any(drawn.get(i) != value for i, value in values.items())}


def _legend(rows: Sequence[ChunkRow]) -> str:
    """The legend: every sign with its meaning and count, in the order of the layers."""
    order: list[str] = [*theme.OUTCOMES, *theme.LAYERS]
    counts = Counter(
        (row.layer if row.outcome == "dropped" else row.outcome, theme.mark(row.outcome, row.layer, row.setting))
        for row in rows
    )
    items = []
    for (name, mark), n in sorted(counts.items(), key=lambda item: order.index(item[0][0])):
        sign = elements.sign(mark, f"layer-{name}" if name in theme.LAYERS else name)
        title = layer(name).title if name in theme.LAYERS else name
        words = f"{title}, {mark.about}" if mark.about else title
        items.append(f"<li>{sign}{numbers.count(n)} {elements.text(words)}</li>")
    return "".join(items)


def _selected() -> None:
    picked: Any = st.session_state["curve"]["selection"]
    if picked["points"]:
        data = picked["points"][0].get("customdata")
        state.open_chunk(data[0] if data else None)


def _cut_settings(result: PoolResult) -> tuple[str, ...]:
    """The settings that currently decide where the curve is cut."""
    settings, cutoff = settings_that_cut(result), layer("cutoff")
    if cutoff.enabled(settings):
        return tuple(f"cutoff.{name}" for name in cutoff.first if name in cutoff.used(settings))
    return ("retrieval.k",) if layer("top_k").enabled(settings) else ()


def _limits(result: PoolResult) -> str:
    """The limit that decided, then the others that applied, then the limits not reached."""
    every, detail, cutoff = limits(result), cutoff_detail(result), result.settings.cutoff
    bound = [elements.text(each.words) for each in reversed(every) if each.bound]
    others = [elements.text(each.words) for each in every if not each.bound]
    if detail is not None and detail.cut.limit is not None:
        compares = f"{detail.value_name} ≤ {numbers.distance(detail.cut.limit)}"
        bound.insert(0, elements.text(f"{cut_name(detail.cut, cutoff)}: {compares}"))
    if detail is not None and detail.cut.strategy != cutoff.strategy:
        others.insert(0, elements.text(f"{cutoff.strategy} is chosen, but {detail.fallback_reason}."))
    decided = [f"<b>{words}</b>" for words in bound[:1]]
    return "".join(f"<li>{words}</li>" for words in (*decided, *bound[1:], *others))


def overlay(
    result: PoolResult,
    points: Points,
    plot: go.Figure,
    titles: Mapping[str, str],
    chosen: str | None,
    *,
    with_controls: bool,
) -> dict[str, Any]:
    """The browser's data: the lines to drag over `plot`, the points that reached the cut, every chunk on the curve with
    its short title and label, the `chosen` one, and the position of the plot's axes."""
    detail, line, layout = cutoff_detail(result), cut_line(result), plot.layout
    margin = layout.margin
    at = {row.id: xy for row, *xy in zip(points.rows, points.x, points.y, strict=True)}
    return {
        "points": [at[i] for i in points.entered if i in at],
        "pinned": 0 if detail is None else result.trace("cutoff").count("pinned"),
        "chunks": [[*at[row.id], titles[row.id], row.kept, *_label(points.grades.get(row.id))] for row in points.rows],
        "open": next((i for i, row in enumerate(points.rows) if row.id == chosen), -1),
        "size": curve_plot.marker_size(layout.xaxis.range[1] - layout.xaxis.range[0]),
        "margin": [margin.l, margin.t, margin.r, margin.b],
        "axes": {
            name: {"range": axis.range, "domain": axis.domain or (0, 1)}
            for name, axis in (("x", layout.xaxis), ("y", layout.yaxis), ("y2", layout.yaxis2))
        },
        "lines": [] if detail is None else _lines(result, detail, line, with_controls=with_controls),
        "cut": line and line.limit,
        "place": line and line.place,
    }


def _label(grade: int | None) -> tuple[str, str]:
    """A label as the curve shows it, and as a screen reader says it."""
    if grade is None:
        return "", ""
    name = GRADES.get(grade, grade)
    return f"{theme.LABELLED} {name}", f", labelled {name}"


def _lines(
    result: PoolResult, detail: CutoffDetail, line: CutLine | None, *, with_controls: bool
) -> list[dict[str, Any]]:
    """The thresholds of the strategy that cut, each with the axis of its line, and the base and factor that convert its
    value to a position there. Without the controls, only the line that cuts has one."""
    reads = strategy(detail.cut.strategy).reads
    best = min(detail.values[: len(detail.cut.gaps) + 1])
    places = {
        "max_results": ("x", 0.5, 1.0),
        "gap_threshold": ("y2", 0.0, 1.0),
        "distance_offset": ("y", best, 1.0),
        "relative_offset": ("y", best, (detail.background or best) - best),
    }
    cuts = ""
    if line is not None and (line.place or line.limit is not None):
        cuts = "x" if line.place else "y" if line.limit == detail.cut.limit else ""
    return [
        _line(result, name, *place) | {"drawn": place[0] in ("y2", cuts)}
        for name, place in places.items()
        if name in reads and place[-1] > 0 and (with_controls or place[0] == cuts)
    ]


def _line(result: PoolResult, name: str, axis: str, base: float, per: float) -> dict[str, Any]:
    info, value = field_info(f"cutoff.{name}"), result.settings.get(f"cutoff.{name}")
    low, step = info.low or 0, info.step or 1
    # As far as the setting's slider reaches.
    count = round((max(info.ceiling or info.high or low, value) - low) / step)
    # The current value may lie between two steps of the slider.
    steps = (info.value_type(round(low + step * i, 6)) for i in range(count + 1))
    values = tuple(sorted({value, *steps}))
    return {
        "path": info.path,
        "label": info.label,
        "axis": axis,
        "base": base,
        "per": per,
        "low": low,
        "step": step,
        "count": count,
        "digits": 0 if info.value_type is int else 3,
        "value": value,
        "kept_by_value": kept_by_value(result, name, values),
    }


def _moved() -> None:
    state.session().drag_moves += 1
    moved = st.session_state[KEY].moved
    state.change_settings({moved["path"]: field_info(moved["path"]).value_type(moved["value"])})
