"""The map of a sweep, and its front of recall against tokens, as plain data for Plotly. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragfilter.evaluate.maps import Map, by_factors
from ragfilter.ui.kit.runs.plots import FIGURES, layout
from ragfilter.ui.look.ink import CLEAR, LEGEND, Ink

HIGHEST = "#e0457b"
COLOURS = "Viridis"
SHOWN = {"f1": "F1", "f2": "F2", "precision": "precision", "recall": "recall"}


def heatmap(
    made: Map, measure: str, here: int, best: int, before: int | None = None, *, dark: bool
) -> dict[str, Any]:
    """The measure over both settings as square markers, since Streamlit reports no clicks on a
    plotly heatmap. One below them fills the gaps between them. With one setting, a line with a
    point for each value. `before` is the place before the last click."""
    ink = Ink.of(dark)
    flat = made.figures[measure].ravel()
    pairs = [(x, y) for x in made.xs for y in made.ys]
    two = made.y is not None
    ys = [y for _, y in pairs] if two else flat.tolist()
    places = made.places
    chosen = {"marker": {"opacity": 1}}
    square = {"symbol": "square", "size": 5, "color": flat[places].tolist(), "colorscale": COLOURS}
    data = [
        {
            "type": "scatter", "mode": "markers" if two else "lines+markers", "showlegend": False,
            "x": [pairs[place][0] for place in places], "y": [ys[place] for place in places],
            "customdata": places,
            "line": {"color": ink.kept, "width": 1.5},
            "marker": square if two else {"size": 7, "color": ink.kept},
            "text": [_told(made, place, measure) for place in places],
            "hoverinfo": "text", "selected": chosen, "unselected": chosen,
        },
        *([_between(made, measure)] if two else []),
        *_marks([x for x, _ in pairs], ys, before, here, best, "#ffffff" if two else ink.text),
    ]  # fmt: skip
    y = (made.y.label if made.y is not None else SHOWN[measure]) or ""
    laid_out = layout(ink, made.x.label, y) | {
        "clickmode": "event+select", "showlegend": True, "height": 430,
        # A click anywhere on a square counts, not only near its middle.
        "hoverdistance": -1,
        "legend": LEGEND | {"bgcolor": "#4a5a5c" if two else CLEAR,
                            "font": {"color": "#ffffff" if two else ink.text}},
    }  # fmt: skip
    if not two:
        laid_out["yaxis"] |= FIGURES
    for axis, values in (("xaxis", made.xs), ("yaxis", made.ys)):
        if by_factors(values[0], values[-1]):
            laid_out[axis]["type"] = "log"
    return {"data": data, "layout": laid_out}


def _between(made: Map, measure: str) -> dict[str, Any]:
    return {
        "type": "heatmap", "name": SHOWN[measure], "x": made.xs, "y": made.ys, "hoverinfo": "skip",
        "z": made.figures[measure].T.tolist(), "colorscale": COLOURS,
        "colorbar": {"thickness": 10, "title": {"text": SHOWN[measure]}, **FIGURES},
    }  # fmt: skip


def front(
    made: Map, here: int, best: int, before: int | None = None, *, dark: bool
) -> dict[str, Any]:
    """Recall against context tokens for every setting, with the Pareto front."""
    ink = Ink.of(dark)
    recall, tokens = made.figures["recall"].ravel(), made.figures["tokens"].ravel()
    line = made.front()
    data = [
        {"type": "scatter", "mode": "markers", "name": "every setting",
         "x": tokens[made.places].tolist(), "y": recall[made.places].tolist(), "hoverinfo": "skip",
         "marker": {"size": 4, "color": ink.muted, "opacity": 0.35}},
        {"type": "scatter", "mode": "lines+markers", "name": "none has more recall for less",
         "x": [float(tokens[i]) for i in line], "y": [float(recall[i]) for i in line],
         "customdata": line, "line": {"color": ink.kept, "width": 1.5},
         "marker": {"size": 8, "color": ink.kept},
         "text": [_told(made, i, "recall") for i in line], "hoverinfo": "text",
         "selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}},
        *_marks(tokens.tolist(), recall.tolist(), before, here, best, ink.text),
    ]  # fmt: skip
    laid_out = layout(ink, "context tokens", "recall") | {
        "clickmode": "event+select", "showlegend": True, "height": 430, "legend": LEGEND,
    }  # fmt: skip
    laid_out["yaxis"] |= FIGURES
    return {"data": data, "layout": laid_out}


def _marks(
    xs: Sequence[float],
    ys: Sequence[float],
    before: int | None,
    here: int,
    best: int,
    colour: str,
) -> list[dict[str, Any]]:
    marks = (
        ("before the click", before, "diamond-open", colour),
        ("in force", here, "circle-open", colour),
        ("highest", best, "x-thin", HIGHEST),
    )
    return [
        {
            "type": "scatter", "mode": "markers", "name": name, "x": [xs[place]],
            "y": [ys[place]], "hoverinfo": "skip", "showlegend": True,
            "marker": {"symbol": symbol, "size": 16, "color": ink,
                       "line": {"width": 2.4, "color": ink}},
        }
        for name, place, symbol, ink in marks if place is not None
    ]  # fmt: skip


def _told(made: Map, place: int, measure: str) -> str:
    values = ", ".join(f"{path.partition('.')[2]} {v:g}" for path, v in made.values(place).items())
    flat = made.at(place)
    return (
        f"{values}<br>{SHOWN.get(measure, measure)} {flat[measure]:.3f}, recall "
        f"{flat['recall']:.3f}<br>{flat['kept']:.1f} chunks, {flat['tokens']:,.0f} tokens"
    )
