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
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import Any

import plotly.graph_objects as go

from ragfilter.layers.cutoff import acting
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import CutoffDetail, PoolResult
from ragfilter.settings.schema import Cutoff
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.inspect.curve_points import Points
from ragfilter.ui.look import theme
from ragfilter.ui.look.plotting import Ink, annotation

Shapes = list[dict[str, Any]]
STEPS, LANE, CURVE = 0.2, 0.24, 0.28
"""Where the strip of steps ends and the curve begins, as fractions of the height, with labels in
between."""
NARROWEST, CHARACTER, APART = 200, 6, 6
"""Pixels: the plot in a window 400 wide, the widest character in the lane, and between labels."""


def step_bars(
    detail: CutoffDetail, window: tuple[float, float], ink: Ink, *, width: float
) -> dict[str, Any]:
    """The gaps between neighbours in the cutoff's list as bars, `width` places wide, for the places
    in `window`."""
    xs, ys, colours, hover, patterns = [], [], [], [], []
    winner = detail.cut.cliff_after_rank
    for gap in detail.cut.gaps:
        if gap.size < 0 or not window[0] <= gap.after_rank + 0.5 <= window[1]:
            continue
        strong = gap.after_rank == winner
        size = numbers.distance(gap.size)
        state = (
            "the cliff"
            if strong
            else "a smaller cliff"
            if gap.cliff
            else "skipped, never a cliff,"
            if gap.skipped
            else "step"
        )
        xs.append(gap.after_rank + 0.5)
        ys.append(gap.size)
        colours.append(ink.kept if strong else ink.muted if gap.cliff else ink.curve)
        hover.append(f"{state} after hit {gap.after_rank}: {size}")
        patterns.append("/" if gap.skipped else "")
    return {
        "type": "bar",
        "x": xs,
        "y": ys,
        "yaxis": "y2",
        "width": [width] * len(xs),
        "marker": {
            "color": colours,
            "line": {"width": 0},
            "pattern": {"shape": patterns, "size": 5, "solidity": 0.35},
        },
        "hovertext": hover,
        "hoverinfo": "text",
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }


@dataclass(frozen=True, slots=True)
class Marks:
    """Bands, lines and labels, as they are added. Labels are next to the plot, above it, or in the
    lane between curve and steps, never on it."""

    ink: Ink
    shapes: Shapes = field(default_factory=list)
    notes: Shapes = field(default_factory=list)

    def add_cut(
        self,
        settings: Cutoff,
        detail: CutoffDetail,
        window: tuple[float, float],
        span: tuple[float, float],
    ) -> None:
        """Add cliffs, skipped gap, cut, fallback line, k and gap threshold. `window` and `span` are
        the visible ranges of x and y."""
        cut, ink = detail.cut, self.ink
        for gap in cut.gaps:
            if gap.size < 0:
                continue
            if gap.after_rank == cut.cliff_after_rank:
                self.shapes.append(_band(gap.after_rank, gap.after_rank + 1, ink))
                label = f"<b>cliff {numbers.distance(gap.size)}</b>"
                at = gap.after_rank + 0.5
                self.notes.append(annotation(at, 1.0, label, ink.kept, yref="paper"))
            elif gap.cliff:
                self.shapes.append(_rule(gap.after_rank + 0.5, ink.muted, dash="dot", width=1))
        if 0 < cut.kept < len(detail.ids):
            self.shapes.append(_rule(cut.kept + 0.5, ink.kept, dash="solid", width=1.2))
        reads = strategy(settings.strategy).reads
        if "distance_offset" in reads:
            text = f"fallback:<br>best + {numbers.distance(settings.distance_offset)}"
            limit = fallback(detail, settings.distance_offset)
            self._add_limit(text, limit, span[1], decides=cut.limit is not None)
        elif cut.limit is not None:
            # The headline says where the limit comes from.
            self._add_limit("limit", cut.limit, span[1], decides=True)
        if "gap_threshold" in reads:
            self._add_threshold(settings.gap_threshold, steps_top(detail))
        self.add_k(len(detail.ids), settings.max_results)
        if any(gap.skipped and gap.after_rank == 1 and gap.size >= 0 for gap in cut.gaps):
            note = {**_lane(1.1, "skipped", ink), "xanchor": "left"}
            ends = _ends(note, window)[1] + APART
            # The hatched bar already says so in its tooltip.
            if all(ends <= _ends(other, window)[0] for other in self.notes if other["y"] == LANE):
                self.notes.append(note)

    def add_k(self, n: int, k: int, *, cuts: bool = False) -> None:
        """Add the line after the first k of `n`, or a note if fewer came in. `cuts`: nothing else
        limits the result, so this line is the cut."""
        ink = self.ink
        if 0 < k < n:
            dash = "solid" if cuts else "dash"
            colour = ink.kept if cuts else ink.muted
            self.shapes.append(_rule(k + 0.5, colour, dash=dash, width=1.2))
            if cuts:
                self.notes.append(annotation(k + 0.5, 1.0, f"k {k}", ink.kept, yref="paper"))
            elif k > 2:
                note = _lane(k + 0.5, f"k {k}", ink)
                self.notes.append({**note, "xanchor": "right", "xshift": -3})
        elif n and k >= n:
            text = f"k {k}: not reached"
            above = annotation(1.0, 1.0, text, ink.muted, yref="paper")
            note = above if cuts else _lane(1.0, text, ink)
            self.notes.append({**note, "xref": "paper", "xanchor": "right"})

    def _add_threshold(self, threshold: float, top: float) -> None:
        """Add the line that a step must reach to be a cliff."""
        text = f"threshold<br>{numbers.distance(threshold)}"
        if threshold > top:
            text, threshold = f"{text}, above", top
        else:
            line = {"color": self.ink.text, "width": 1, "dash": "dot"}
            self.shapes.append(_level(threshold, line, yref="y2"))
        self.notes.append(_beside(threshold, text, self.ink.muted, yref="y2"))

    def _add_limit(self, text: str, limit: float, top: float, *, decides: bool) -> None:
        """Add the line up to which hits stay: bold if it decides, muted otherwise."""
        colour = self.ink.kept if decides else self.ink.muted
        valued = f"{text}<br>= {numbers.distance(limit)}"
        if limit > top:
            self.notes.append(_beside(top, f"{valued}, above", colour, yanchor="top"))
            return
        width, dash = (1.6, "solid") if decides else (1, "dot")
        self.shapes.append(_level(limit, {"color": colour, "width": width, "dash": dash}))
        self.notes.append(_beside(limit, f"<b>{valued}</b>" if decides else text, colour))


def _ends(note: dict[str, Any], window: tuple[float, float]) -> tuple[float, float]:
    """Where a label in the lane begins and ends, in pixels of the narrowest plot."""
    low, high = (0, 1) if note["xref"] == "paper" else window
    at = (note["x"] - low) / (high - low) * NARROWEST + note.get("xshift", 0)
    wide = CHARACTER * len(note["text"])
    return (at, at + wide) if note["xanchor"] == "left" else (at - wide, at)


def steps_top(detail: CutoffDetail) -> float:
    """The upper end of the strip of steps. It depends only on the hits, so that moving the
    threshold moves its line and not the bars."""
    return max(1.5 * max((gap.size for gap in detail.cut.gaps), default=0.0), 0.04)


def fallback(detail: CutoffDetail, offset: float) -> float:
    """The value up to which hits stay if there is no cliff."""
    return best_of(detail) + offset if detail.cut.limit is None else detail.cut.limit


def best_of(detail: CutoffDetail) -> float:
    """The best of the values that the cutoff looked at."""
    return min(detail.values[: len(detail.cut.gaps) + 1])


def _band(x0: float, x1: float, ink: Ink) -> dict[str, Any]:
    return {
        "type": "rect", "x0": x0, "x1": x1, "yref": "paper", "y0": 0, "y1": 1,
        "fillcolor": ink.band, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip


def _rule(x: float, colour: str, *, dash: str, width: float) -> dict[str, Any]:
    return {
        "type": "line", "x0": x, "x1": x, "yref": "paper", "y0": CURVE, "y1": 1,
        "line": {"color": colour, "width": width, "dash": dash}, "layer": "below",
    }  # fmt: skip


def _level(y: float, line: dict[str, Any], *, yref: str = "y") -> dict[str, Any]:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": yref, "y0": y, "y1": y,
        "line": line,
    }  # fmt: skip


def _lane(x: float, text: str, ink: Ink) -> dict[str, Any]:
    """A label between curve and steps, where nothing else is drawn."""
    return annotation(x, LANE, text, ink.muted, 11, yref="paper", yanchor="middle")


def _beside(
    y: float, text: str, colour: str, *, yref: str = "y", yanchor: str = "middle"
) -> dict[str, Any]:
    """A label to the right of the plot."""
    left = {"xref": "paper", "xanchor": "left", "xshift": 5, "align": "left"}
    return annotation(1.0, y, text, colour, 11, yref=yref, yanchor=yanchor, **left)


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
    added = Marks(ink)
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
        data.append(step_bars(detail, window, ink, width=width))
        added.add_cut(acting(result).cutoff, detail, window, span)
        top = steps_top(detail)
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
    bottom = CURVE if steps_top else 0.0
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
            **axis, "domain": [0, STEPS], "title": {**axis["title"], "text": "gap"},  # type: ignore[dict-item]
            "tickformat": ".3f", "nticks": 3, "range": [0, steps_top or 1],
            "visible": bool(steps_top),
        },
    }  # fmt: skip
