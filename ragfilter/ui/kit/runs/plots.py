"""The plots of a run as plain data for Plotly. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ragfilter.evaluate.matching import QueryChange
from ragfilter.evaluate.plotted import DEEP, LabelPoint, fixed_line, frontier, marks
from ragfilter.evaluate.plotted import kept_counts as counts_of
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.table import ORACLE, Row
from ragfilter.evaluate.told import between_ends
from ragfilter.evaluate.variants import UNFILTERED
from ragfilter.text.titles import short_title
from ragfilter.ui.look import theme
from ragfilter.ui.look.plotting import LEGEND, Ink

HEIGHT = 360
SMALL = LEGEND | {"font": {"size": 12}}
FIGURES = {"tickformat": ".3f"}
"""The axis of a measure or a distance, with as many decimals everywhere as in tables."""
SYMBOLS = {
    "plain": "square", "strategy": "circle", "profile": "diamond", "settings": "star",
    "oracle": "cross",
}  # fmt: skip


def precision_recall(
    rows: Sequence[Row], records: Sequence[QueryRecord], *, dark: bool
) -> dict[str, Any]:
    """Precision against recall for every row, with the line of all fixed k and the oracle."""
    ink = Ink.of(dark)
    data: list[dict[str, Any]] = [
        _line("every fixed k", fixed_line(records), ink.muted, "dot"),
        _line("oracle, by weight of recall", frontier(records), ink.kept, "solid"),
    ]
    for group, symbol in SYMBOLS.items():
        own = [row for row in rows if row.group == group]
        if own:
            data.append({
                "type": "scatter", "mode": "markers", "name": group,
                "x": [row.means["recall"].mean for row in own],
                "y": [row.means["precision"].mean for row in own],
                "hovertext": [_told(row) for row in own], "hoverinfo": "text",
                "marker": {"symbol": symbol, "size": 15 if group == "settings" else 10,
                           "color": ink.kept if group in ("settings", "oracle") else ink.curve,
                           "line": {"width": 1, "color": ink.surface}},
            })  # fmt: skip
    drawn = layout(ink, "recall", "precision")
    drawn["xaxis"] |= FIGURES
    drawn["yaxis"] |= FIGURES
    return {"data": data, "layout": drawn | {"showlegend": True, "legend": SMALL}}


def kept_counts(records: Sequence[QueryRecord], *, dark: bool) -> dict[str, Any]:
    """How many questions keep how many chunks with the settings of the run."""
    ink = Ink.of(dark)
    counts = counts_of(records)
    data = [{
        "type": "bar", "x": list(range(len(counts))), "y": counts, "marker": {"color": ink.kept},
        "hovertemplate": "%{y} questions keep %{x}<extra></extra>",
    }]  # fmt: skip
    drawn = layout(ink, "chunks kept", "questions")
    if max(counts, default=0) < 6:
        # There is no half a question.
        drawn["yaxis"]["dtick"] = 1
    return {"data": data, "layout": drawn}


def distances(records: Sequence[QueryRecord], threshold: float, *, dark: bool) -> dict[str, Any]:
    """The distance curves of all questions in one plot, with relevant and irrelevant chunks marked
    and a line across them."""
    ink = Ink.of(dark)
    xs: list[float | None] = []
    ys: list[float | None] = []
    for record in records:
        first = record.curve.distances[:DEEP]
        xs += [*range(1, len(first) + 1), None]
        ys += [*first, None]
    dropped = theme.mark("dropped", "cutoff").colour(dark=dark)
    labelled = marks(records)
    data: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "name": "not labelled", "x": xs,
         "y": ys, "line": {"color": ink.curve, "width": 0.7}, "opacity": 0.45,
         "hoverinfo": "skip"},
        _marked("not relevant", [m for m in labelled if not m.relevant], dropped, "x-thin-open"),
        _marked("relevant", [m for m in labelled if m.relevant], ink.kept, "circle"),
    ]  # fmt: skip
    drawn = layout(ink, "rank by distance", "distance") | {
        "showlegend": True, "legend": SMALL,
        "shapes": [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": threshold,
                    "y1": threshold, "line": {"color": ink.text, "width": 1.4, "dash": "dash"}}],
    }  # fmt: skip
    drawn["yaxis"] |= FIGURES
    return {"data": data, "layout": drawn}


def gains(changes: Sequence[QueryChange], *, dark: bool) -> dict[str, Any]:
    """The gain or loss of every question, greatest gain first."""
    ink = Ink.of(dark)
    ordered = sorted(changes, key=lambda each: -each.gain)
    dropped = theme.LAYERS["query_must"].colour(dark=dark)
    data = [{
        "type": "bar", "x": list(range(1, len(ordered) + 1)), "y": [e.gain for e in ordered],
        "marker": {"color": [ink.kept if e.gain > 0 else dropped for e in ordered]},
        "customdata": [escape(short_title(each.query, 70), quote=False) for each in ordered],
        "hovertemplate": "%{customdata}<br>%{y:+.3f}<extra></extra>",
    }]  # fmt: skip
    drawn = layout(ink, "questions, the greatest gain first", "ΔF1")
    # There is no half a question.
    drawn["xaxis"] |= {"tick0": 1, "dtick": max(len(ordered) // 8, 1)}
    return {"data": data, "layout": drawn | {"height": 220}}


def _marked(name: str, found: Sequence[LabelPoint], colour: str, sign: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": [each.rank for each in found],
        "y": [each.distance for each in found],
        "marker": {"color": colour, "size": 5, "symbol": sign,
                   "line": {"width": 1, "color": colour}},
        "hovertemplate": f"rank %{{x}}, distance %{{y:.3f}}<extra>{name}</extra>",
    }  # fmt: skip


def _told(row: Row) -> str:
    f1 = row.means["f1"]
    name = row.name if row.name not in (UNFILTERED, ORACLE) else f"{row.name}: {row.about}"
    return (
        f"{name}<br>precision {row.means['precision'].mean:.3f}, recall "
        f"{row.means['recall'].mean:.3f}<br>F1 {f1.mean:.3f} ({between_ends(f1)})"
    )


def _line(
    name: str, points: Sequence[tuple[float, float]], colour: str, dash: str
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": [x for x, _ in points],
        "y": [y for _, y in points], "line": {"color": colour, "width": 1.4, "dash": dash},
        "hoverinfo": "skip",
    }  # fmt: skip


def layout(ink: Ink, x: str, y: str) -> dict[str, Any]:
    """The layout that all plots share."""
    axis = {"gridcolor": ink.line, "zeroline": False, "linecolor": ink.line, "fixedrange": True}
    return ink.layout(align="auto") | {
        "height": HEIGHT, "margin": {"l": 56, "r": 12, "t": 36, "b": 44},
        "xaxis": {**axis, "title": {"text": x}}, "yaxis": {**axis, "title": {"text": y}},
    }  # fmt: skip
