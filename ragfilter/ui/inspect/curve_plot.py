"""The distance curve, which shows where the result ends and why. Pure functions place every hit and make the plot.

By default it has one line, with kept hits below and dropped ones above, and the cliff shaded. With its controls open,
it has ticks, and a strip below with the steps between the hits that reached the cutoff.

The curve is the list that was cut: hits that reached the cutoff are at places 1, 2, 3 … of that list. Hits dropped
earlier are between these places, by value."""

from __future__ import annotations

import textwrap
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from html import escape
from itertools import accumulate
from typing import Any

import plotly.graph_objects as go

from ragfilter.layers.layer import Mark
from ragfilter.layers.registry import layer
from ragfilter.layers.strategies.strategy import strategy
from ragfilter.model import CutoffDetail, PoolResult
from ragfilter.results.rows import ChunkRow
from ragfilter.results.thresholds import CutLine, compared
from ragfilter.settings import schema
from ragfilter.stores.label_book import GRADES
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.kit.guide import TERMS
from ragfilter.ui.look import theme
from ragfilter.ui.look.theme import UNDIMMED, Ink
from ragfilter.ui.session.state import AxisRanges

MIN_SHOWN = 10
HEIGHT, TUNING_HEIGHT = 372, 440
STEPS, CURVE = 0.2, 0.26
"""Where the strip of steps ends and the curve begins, as fractions of the height."""
NAMED_FROM = 0.08
"""The share of the height above the line that leaves room for its name."""
Shapes = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Points:
    """The place of every drawn hit: x by row, y by row. `unit` names the compared value. `entered`
    has the ids that reached the cut, in order; empty if nothing cuts. `grades` are by id. Hits in `plain` are placed
    by their distance, because they were dropped before shared words lowered it."""

    rows: tuple[ChunkRow, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    unit: str
    entered: tuple[str, ...] = ()
    grades: Mapping[str, int] = field(default_factory=dict)
    plain: frozenset[str] = frozenset()

    def folded(self, chosen: str | None) -> Points:
        """Without hits dropped before the cut, except labelled chunks and the open one."""
        if not self.entered:
            return self
        reached = {*self.entered, *self.grades, chosen}
        at = [i for i, row in enumerate(self.rows) if row.kept or row.id in reached]
        rows, x, y = (tuple(each[i] for i in at) for each in (self.rows, self.x, self.y))
        return replace(self, rows=rows, x=x, y=y)  # type: ignore[arg-type]


def place(result: PoolResult, rows: Sequence[ChunkRow], detail: CutoffDetail | None) -> Points:
    """Place every hit by its rank in the list that was cut and the value compared there."""
    unit, values = compared(result, detail)
    lowered = detail is not None and detail.value_kind == "lowered"
    plain = {row.id: row.distance for row in rows if lowered and row.id not in values}
    values |= plain
    entered = tuple(each.chunk_id for each in result.trace("top_k").decisions) if detail is None else detail.ids
    every = [row for row in rows if row.id in values and (row.rank > 0 or row.id in entered)]
    at = _places(entered, [row.id for row in every], values)
    shown = sorted(every, key=lambda row: at[row.id])
    x, y = tuple(at[row.id] for row in shown), tuple(values[row.id] for row in shown)
    return Points(tuple(shown), x, y, unit, entered, plain=frozenset(plain))


def _places(entered: Sequence[str], every: Sequence[str], values: Mapping[str, float]) -> dict[str, float]:
    """The x of every hit: its place among `entered`, or a fraction within its step; beyond the last
    place, one step each. `every` is in order of value."""
    known = [i for i in entered if i in values]
    at = {i: float(place) for place, i in enumerate(known, start=1)}
    # A pinned hit may come before nearer ones. Hits in between are placed by the hits after it.
    reached = list(accumulate((values[i] for i in reversed(known)), min))[::-1]
    between: dict[int, list[str]] = {}
    for i in every:
        if i not in at:
            between.setdefault(bisect_right(reached, values[i]), []).append(i)
    for after, members in between.items():
        members.sort(key=lambda i: values[i])
        share = 1.0 if after == len(known) else 1.0 / (len(members) + 1)
        at |= {i: after + share * n for n, i in enumerate(members, start=1)}
    return at


def around_cut(result: PoolResult, points: Points, detail: CutoffDetail | None) -> tuple[float, float]:
    """The range of x that shows the cut and a little beyond it."""
    settings = result.settings
    k = settings.cutoff.max_results if settings.cutoff.enabled else settings.retrieval.k
    beyond = set() if detail is None else set(detail.ids[: detail.cut.kept + 1])
    k = min(k, len(points.entered) or k)
    # Chunks from an expansion may be anywhere; the view stays with the others.
    reached = [
        x
        for row, x in zip(points.rows, points.x, strict=True)
        if (row.kept or row.id in beyond) and row.outcome != "expanded"
    ]
    high = max(2 * k, MIN_SHOWN, max(reached, default=0) + 3)
    return 0.3, min(float(high), max(points.x, default=float(MIN_SHOWN))) + 0.7


def axis_ranges(points: Points, window: tuple[float, float], line: CutLine | None) -> AxisRanges:
    """The ranges that show `points` and, if it is close, `line`, with room for the words below."""
    seen = [y for x, y in zip(points.x, points.y, strict=True) if window[0] <= x <= window[1]]
    if not seen:
        return AxisRanges(window, (0.0, 1.0))
    low, high = min(seen), max(seen)
    room = max(high - low, 0.05)
    if line is not None and line.limit is not None and line.limit <= high + 0.6 * room:
        low, high = min(low, line.limit), max(high, line.limit)
        room = max(high - low, 0.05)
    return AxisRanges(window, (low - 0.3 * room, high + 0.12 * room))


def plot(
    points: Points,
    line: CutLine | None,
    ranges: AxisRanges,
    *,
    steps_of: tuple[PoolResult, CutoffDetail] | None = None,
    second: tuple[str, Mapping[str, float]] | None = None,
    chosen: str | None = None,
    dark: bool = False,
) -> go.Figure:
    """The curve of the hits at `points`, with the `line` that cuts them, in `ranges`. `steps_of` has the steps for the
    strip. `second` is another score with each hit's distance by id. `chosen` is the id of the open chunk."""
    low, high = ranges.window
    ink = Ink(dark)
    # The axes are fixed, so hits outside would stay invisible, and drawing 200 hits takes most of an update's time.
    shown = [i for i, x in enumerate(points.x) if low <= x <= high]
    opened = [(x, y) for row, x, y in zip(points.rows, points.x, points.y, strict=True) if chosen and row.id == chosen]
    ring = theme.marker("circle-open", 20, ink.text, 1.4)
    data = [
        _joined(points, ranges.window, ink),
        *_dots(points, shown, dark, marker_size(high - low)),
        theme.trace("markers", opened[:1], hoverinfo="skip", marker=ring, **UNDIMMED),
    ]
    shapes: Shapes = []
    raw = [row for i in shown if (row := points.rows[i]).id in points.plain]
    signs = " ".join(dict.fromkeys(theme.mark(row.outcome, row.layer, row.setting).sign for row in raw))
    axis = f"↑ farther from the question<br>{points.unit}{signs and f'; {signs} distance alone'}"
    notes = [_note(axis, ink.muted, x=0, y=1, yref="paper", yanchor="bottom", xshift=-24)]
    if line is not None:
        _add_line(shapes, notes, line, ranges, ink, points)
    if second is not None:
        name, values = second
        places = [(points.x[i], values[points.rows[i].id]) for i in shown if points.rows[i].id in values]
        look = {"line": {"color": ink.muted, "width": 1, "dash": "dot"}, "marker": {"size": 4, "color": ink.muted}}
        hint = f"{escape(name)} %{{y:.3f}}<extra></extra>"
        data.append(theme.trace("lines+markers", places, name=name, yaxis="y3", hovertemplate=hint, **look, **UNDIMMED))
        notes.append(_note(escape(name), ink.muted, y=1, yref="paper", yanchor="bottom", xshift=40))
    top = 0.0
    if steps_of is not None:
        result, detail = steps_of
        # Depends only on the hits, so that moving the threshold moves its line and not the bars.
        top = max(1.5 * max((gap.size for gap in detail.cut.gaps), default=0.0), 0.04)
        data.append(_steps(detail, ranges.window, ink))
        if "gap_threshold" in strategy(detail.cut.strategy).reads:
            threshold = result.settings.cutoff.gap_threshold
            label = f"{schema.field_info('cutoff.gap_threshold').label}{', above' if threshold > top else ''}"
            threshold = min(threshold, top)
            dots = {"color": ink.text, "width": 1, "dash": "dot"}
            shapes.append(_shape(y0=threshold, y1=threshold, yref="y2", line=dots))
            notes.append(_note(label, ink.muted, y=threshold, yref="y2", yanchor="bottom"))
    layout = _layout(ranges, ink, top=top, ticks=steps_of is not None, second=second is not None)
    layout |= {"shapes": shapes, "annotations": notes}
    # Validation would take longer than everything else; the tests do it.
    return go.Figure({"data": data, "layout": layout}, _validate=False)


def _add_line(shapes: Shapes, notes: Shapes, line: CutLine, ranges: AxisRanges, ink: Ink, points: Points) -> None:
    """Add the line with a word at each side, and the cliff."""
    (low, high), (bottom, top) = ranges.window, ranges.span
    beginning = low + 0.2 * (high - low)
    if line.place is not None:
        across = {"x0": line.place, "x1": line.place, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
        shapes.append(_shape(**across, line={"color": ink.kept, "width": 1.6}, layer="below"))
        at = {"x": line.place, "xref": "x", "y": 1, "yref": "paper", "yanchor": "top"}
        # Before the line or, at the curve's beginning, where there is no room, after it.
        if line.place > beginning:
            notes.append(_note(f"<b>{line.label}</b><br>kept before", ink.kept, **at, xshift=-5))
        if line.place < high:
            name = "" if line.place > beginning else f"<b>{line.label}</b><br>"
            notes.append(_note(f"{name}dropped after", ink.muted, **at, xanchor="left", xshift=5))
        return
    if line.limit is None:
        notes.append(_note(line.label, ink.muted, y=0, yref="y domain"))
        return
    limit = min(line.limit, top)
    shapes.append(_shape(y0=limit, y1=limit, line={"color": ink.kept, "width": 1.6}))
    beyond = ", above" if line.limit > top else ""
    notes.append(_note(f"<b>{line.label}{beyond}</b><br>kept below", ink.kept, y=limit, yanchor="top"))
    about = [line.cliff, line.larger]
    if line.above is not None and line.below is not None:
        band = {"type": "rect", "fillcolor": ink.band, "line": {"width": 0}}
        shapes.append(_shape(**band, y0=line.below, y1=line.above, layer="below"))
        # Above the curve or, at its beginning or where pins stand, below it.
        near = line.above + NAMED_FROM * (top - bottom)
        pins = any(x < beginning and line.above <= y < near for x, y in zip(points.x, points.y, strict=True))
        edge = {} if pins or line.kept + 0.5 <= beginning else {"x": 0}
        notes.append(_note("dropped above", ink.muted, y=line.above, yanchor="bottom", **edge))
    if line.above is not None and line.above - limit > NAMED_FROM * (top - bottom):
        notes.append(_note(about.pop(0), ink.muted, y=line.above, yanchor="top"))
    notes.append(_note("<br>".join(filter(None, about)), ink.muted, x=0, y=0, yref="y domain"))


def _steps(detail: CutoffDetail, window: tuple[float, float], ink: Ink) -> dict[str, Any]:
    """The steps between neighbours in the cutoff's list as bars, for the places in `window`."""
    low, high = window
    colours, hover, patterns = [], [], []
    gaps = [g for g in detail.cut.gaps if g.size >= 0 and low <= g.after_rank + 0.5 <= high]
    for gap in gaps:
        if gap.after_rank == detail.cut.cliff_after_rank:
            colour, word = ink.kept, "the cliff"
        elif gap.cliff:
            colour, word = ink.muted, "a smaller cliff"
        else:
            colour, word = ink.curve, "skipped, never a cliff," if gap.skipped else "step"
        colours.append(colour)
        hover.append(f"{word} after hit {gap.after_rank}: {numbers.distance(gap.size)}")
        patterns.append("/" if gap.skipped else "")
    return {
        "type": "bar",
        "x": [gap.after_rank + 0.5 for gap in gaps],
        "y": [gap.size for gap in gaps],
        "yaxis": "y2",
        "width": max(0.46, 0.009 * (high - low)),
        "marker": {"color": colours, "line": {"width": 0}, "pattern": {"shape": patterns, "size": 5, "solidity": 0.35}},
        "hovertext": hover,
        "hoverinfo": "text",
        **UNDIMMED,
    }


def _shape(**given: Any) -> dict[str, Any]:
    """A line across the plot, unless `given` says otherwise."""
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y"} | given


def _note(text: str, colour: str, **at: Any) -> dict[str, Any]:
    """A label, at the plot's right edge unless `at` says otherwise. The pointer on it explains its words."""
    edge = "left" if at.get("x") == 0 else "right"
    place = {"x": 1.0, "xref": "paper", "yref": "y", "xanchor": edge, "yanchor": "bottom"} | at
    font = {"size": 12, "color": colour}
    about = "<br>".join(_wrapped(TERMS[word]) for word in ("limit", "cliff") if word in text)
    return {"text": text, "showarrow": False, "font": font, "align": place["xanchor"], "hovertext": about, **place}


def _joined(points: Points, window: tuple[float, float], ink: Ink) -> dict[str, Any]:
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
    return theme.trace("lines", pairs, line={"color": ink.curve, "width": 1.4}, hoverinfo="skip")


def marker_size(width: float) -> float:
    """The size of a kept hit's marker in pixels, smaller if more ranks share the axis."""
    return 11.0 if width <= 40 else 8.5 if width <= 110 else 6.5


def _dots(points: Points, shown: Sequence[int], dark: bool, size: float) -> list[dict[str, Any]]:
    """One trace for each outcome of a hit, with kept hits last and so on top."""
    groups: dict[tuple[bool, str, Mark], list[int]] = {}
    for i in shown:
        row = points.rows[i]
        stays = row.outcome != "dropped"
        mark = theme.mark(row.outcome, row.layer, row.setting)
        groups.setdefault((stays, row.outcome if stays else row.layer, mark), []).append(i)
    traces = []
    for (stays, name, mark), members in sorted(groups.items(), key=lambda item: item[0][0]):
        colour, width = mark.colour(dark=dark), 1.8 if mark.symbol == "x-thin" else 1.5
        look = {
            "name": name if stays else f"dropped by {name} {mark.about}".strip(),
            "customdata": [[points.rows[i].id, _hover(points, i)] for i in members],
            "hovertemplate": "%{customdata[1]}<extra></extra>",
            "marker": theme.marker(mark.symbol, size * (1.0 if stays else 0.75), colour, width),
        }
        places = ((points.x[i], points.y[i]) for i in members)
        traces.append(theme.trace("markers", places, **look, **UNDIMMED))
    return traces


def _hover(points: Points, i: int) -> str:
    row = points.rows[i]
    figures = {"distance": row.distance, "gap": row.gap, "rerank": row.rerank_score}
    facts = [f"{name} {numbers.distance(value)}" for name, value in figures.items() if value is not None]
    sign = theme.mark(row.outcome, row.layer, row.setting).sign
    lines = [
        f"<b>{escape(short_title(row.title, 56), quote=False)}</b>",
        escape(row.id, quote=False),
        " · ".join([f"rank {row.rank}", *facts]),
        f"{sign} {row.outcome} by {layer(row.layer).title}: {_wrapped(row.reason)}",
    ]
    if (grade := points.grades.get(row.id)) is not None:
        lines.append(f"{theme.LABELLED} {GRADES.get(grade, grade)}")
    return "<br>".join(filter(None, lines))


@lru_cache(maxsize=4096)
def _wrapped(reason: str) -> str:
    """A reason split into lines, cached because hundreds of hits share few reasons."""
    return "<br>".join(escape(line, quote=False) for line in textwrap.wrap(reason, 52))


def _layout(ranges: AxisRanges, ink: Ink, *, top: float, ticks: bool, second: bool) -> dict[str, Any]:
    axis = {
        "showgrid": False,
        "zeroline": False,
        "tickfont": {"size": 12, "color": ink.muted},
        "fixedrange": True,
        "showticklabels": ticks,
        # Otherwise Plotly measures every label, which takes a fifth of the drawing time.
        "ticklabeloverflow": "allow",
    }
    whole = 1 if ranges.window[1] - ranges.window[0] <= 12 else None
    x = axis | {"range": list(ranges.window), "anchor": "y2" if top else "y", "tickformat": "d", "dtick": whole}
    y = axis | {"range": list(ranges.span), "domain": [CURVE if top else 0.0, 1], "tickformat": ".3f", "nticks": 5}
    strip = {"range": [0, top or 1], "domain": [0, STEPS], "tickformat": ".3f", "nticks": 3, "visible": bool(top)}
    right = {"overlaying": "y", "side": "right", "tickformat": ".3~f", "nticks": 5, "visible": second}
    return ink.layout() | {
        "height": TUNING_HEIGHT if ticks else HEIGHT,
        "margin": {"l": 52 if ticks else 26, "r": 54 if second else 14, "t": 40, "b": 26 if ticks else 10},
        "dragmode": "pan",
        "clickmode": "event+select",
        "hovermode": "closest",
        "hoverdistance": 16,
        "uirevision": "curve",
        "bargap": 0,
        "xaxis": x | {"tickangle": 0},
        "yaxis": y | {"showline": True, "linecolor": ink.line},
        "yaxis2": axis | strip,
        "yaxis3": axis | right,
    }
