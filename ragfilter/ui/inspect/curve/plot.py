"""The distance curve, which shows where the result ends and why. A pure function that returns a
Plotly plot.

The upper part shows every hit by its value, with the cut. The lower part shows the steps between
the hits that reached the cutoff, with the threshold they are compared with. Hits dropped earlier
are drawn off the line, in the step that contains their value.
"""

from __future__ import annotations

import textwrap
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

import plotly.graph_objects as go

from ragfilter.layers.cutoff import acting
from ragfilter.model import CutoffDetail, PoolResult
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.inspect.curve import marks
from ragfilter.ui.inspect.curve.marks import fallback
from ragfilter.ui.inspect.curve.points import Points
from ragfilter.ui.look import theme
from ragfilter.ui.look.plotting import Ink

HEIGHT = 388


def plot(
    result: PoolResult,
    points: Points,
    detail: CutoffDetail | None,
    window: tuple[float, float],
    *,
    chosen: str | None = None,
    dark: bool = False,
) -> go.Figure:
    """The curve of `result`, whose hits are at `points`. `detail` is the cut to show, if any.
    `window` is the first and last x shown; `chosen` is the id of the open chunk."""
    low, high = window
    ink = Ink.of(dark)
    added = marks.Marks(ink)
    top = 0.0
    size = marker_size(high - low)
    # The axes are fixed, so hits outside could never be seen, and drawing 200 hits takes the
    # browser most of the time of an update.
    shown = [i for i, x in enumerate(points.x) if low <= x <= high]
    span = _span([points.y[i] for i in shown], result, detail)
    data = [
        _line(points, window, ink),
        *_dots(points, shown, dark, size),
        *_ring(points, chosen, ink),
    ]
    if detail is not None:
        width = max(0.46, 0.009 * (high - low))
        data.append(marks.steps(detail, window, ink, width=width))
        added.add_cut(acting(result).cutoff, detail, window, span)
        top = marks.steps_top(detail)
    elif points.entered:
        added.add_k(len(points.entered), result.settings.retrieval.k, cuts=True)
    layout = _layout(points, window, span, ink, steps_top=top)
    layout |= {"shapes": added.shapes, "annotations": added.notes}
    # Validation would take longer than everything else; the tests do it.
    return go.Figure({"data": data, "layout": layout}, _validate=False)


def _line(points: Points, window: tuple[float, float], ink: Ink) -> dict[str, Any]:
    """A line through the hits that reached the cut, or through all hits if nothing cuts. It
    includes one point beyond each end of the window, so that it runs to the edge."""
    entered = set(points.entered)
    pairs = [
        (x, y)
        for row, x, y in zip(points.rows, points.x, points.y, strict=True)
        if (not entered or row.id in entered) and row.outcome != "pinned"
    ]
    xs = [x for x, _ in pairs]
    pairs = pairs[max(bisect_left(xs, window[0]) - 1, 0) : bisect_right(xs, window[1]) + 1]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [x for x, _ in pairs],
        "y": [y for _, y in pairs],
        "line": {"color": ink.curve, "width": 1.4},
        "hoverinfo": "skip",
    }


def marker_size(width: float) -> float:
    """The size of a kept hit's marker in pixels, smaller if more ranks share the axis."""
    return 11.0 if width <= 40 else 8.5 if width <= 110 else 6.5


def _dots(points: Points, shown: Sequence[int], dark: bool, size: float) -> list[dict[str, Any]]:
    """One trace for each outcome of a hit, with kept hits last and so on top."""
    groups: dict[tuple[bool, str], list[int]] = {}
    for i in shown:
        row = points.rows[i]
        stays = row.outcome != "dropped"
        groups.setdefault((stays, row.outcome if stays else row.layer), []).append(i)
    traces = []
    for (stays, name), members in sorted(groups.items(), key=lambda item: item[0][0]):
        first = points.rows[members[0]]
        mark = theme.mark(first.outcome, first.layer)
        colour = mark.colour(dark=dark)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name if stays else f"dropped by {name}",
                "x": [points.x[i] for i in members],
                "y": [points.y[i] for i in members],
                "customdata": [[points.rows[i].id, *_hover(points, i)] for i in members],
                "hovertemplate": "%{customdata[1]}<extra></extra>",
                "marker": {
                    "symbol": mark.symbol,
                    "size": size * (1.0 if stays else 0.75),
                    "color": colour,
                    "line": {"color": colour, "width": 1.8 if mark.symbol == "x-thin" else 1.5},
                },
                "selected": {"marker": {"opacity": 1}},
                "unselected": {"marker": {"opacity": 1}},
            }
        )
    return traces


def _hover(points: Points, i: int) -> tuple[str]:
    row = points.rows[i]
    mark = theme.mark(row.outcome, row.layer)
    gap = "" if row.gap is None else f" · gap {numbers.distance(row.gap)}"
    score = "" if row.rerank_score is None else f" · rerank {numbers.distance(row.rerank_score)}"
    reason = _wrapped(row.reason)
    name = f"<br>{escape(row.id, quote=False)}" if row.id else ""
    return (
        f"<b>{escape(short_title(row.title, 56), quote=False)}</b>{name}<br>"
        f"rank {row.rank} · distance {numbers.distance(row.distance)}{gap}{score}<br>"
        f"{mark.sign} {row.outcome} by {row.layer}: {reason}",
    )


@lru_cache(maxsize=4096)
def _wrapped(reason: str) -> str:
    """A reason split into lines, cached because hundreds of hits share few reasons in every
    rerun."""
    return "<br>".join(escape(line, quote=False) for line in textwrap.wrap(reason, 52))


def _ring(points: Points, chosen: str | None, ink: Ink) -> list[dict[str, Any]]:
    """A ring around the open chunk."""
    at = [i for i, row in enumerate(points.rows) if chosen and row.id == chosen]
    if not at:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [points.x[at[0]]],
            "y": [points.y[at[0]]],
            "marker": {
                "symbol": "circle-open",
                "size": 20,
                "color": ink.text,
                "line": {"color": ink.text, "width": 1.4},
            },
            "hoverinfo": "skip",
            "unselected": {"marker": {"opacity": 1}},
        }
    ]


def _span(
    seen: Sequence[float], result: PoolResult, detail: CutoffDetail | None
) -> tuple[float, float]:
    """The visible range of y, which includes the fallback line if it is close."""
    if not seen:
        return 0.0, 1.0
    low, high = min(seen), max(seen)
    room = max(high - low, 0.05)
    if detail is not None and detail.cut.strategy == "gap":
        limit = fallback(detail, result.settings.cutoff.distance_offset)
        if detail.cut.limit is not None or limit <= high + 0.6 * room:
            high = max(high, limit)
    room = max(high - low, 0.05)
    return low - 0.14 * room, high + 0.12 * room


def _layout(
    points: Points,
    window: tuple[float, float],
    span: tuple[float, float],
    ink: Ink,
    *,
    steps_top: float,
) -> dict[str, Any]:
    axis = {
        "showgrid": False, "zeroline": False, "tickfont": {"size": 12, "color": ink.muted},
        "title": {"font": {"size": 12, "color": ink.muted}, "standoff": 8}, "fixedrange": True,
        # Otherwise plotly measures every label, which takes a fifth of the drawing time.
        "ticklabeloverflow": "allow",
    }  # fmt: skip
    grid = {"showgrid": True, "gridcolor": ink.line, "gridwidth": 1}
    x_title = {**axis["title"], "text": points.axis}  # type: ignore[dict-item]
    y_title = {**axis["title"], "text": points.unit}  # type: ignore[dict-item]
    bottom = marks.CURVE if steps_top else 0.0
    wide = window[1] - window[0]
    return ink.layout() | {
        "height": HEIGHT,
        "margin": {"l": 60, "r": 86 if steps_top else 10, "t": 20, "b": 38},
        "dragmode": "pan",
        "clickmode": "event+select",
        "hovermode": "closest",
        "hoverdistance": 16,
        "uirevision": "curve",
        "bargap": 0,
        "xaxis": {
            **axis, "title": x_title, "range": list(window), "anchor": "y2" if steps_top else "y",
            "tickformat": "d", "tickangle": 0, "dtick": 1 if wide <= 12 else None,
        },
        "yaxis": {
            **axis, **grid, "title": y_title, "range": list(span), "domain": [bottom, 1],
            "tickformat": ".3f", "nticks": 6,
        },
        "yaxis2": {
            **axis, "domain": [0, marks.STEPS], "title": {**axis["title"], "text": "gap"},  # type: ignore[dict-item]
            "tickformat": ".3f", "nticks": 3, "range": [0, steps_top or 1],
            "visible": bool(steps_top),
        },
    }  # fmt: skip
