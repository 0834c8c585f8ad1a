"""The plots of a run, as plain data for Plotly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragfilter.evaluate.frame import Row, interval_of
from ragfilter.evaluate.prefixes import SHOWN_RANKS, Curve, frontier
from ragfilter.evaluate.variants import ORACLE, UNFILTERED
from ragfilter.evaluate.wording import between_ends
from ragfilter.ui.look import theme
from ragfilter.ui.look.theme import LEGEND, THREE_DECIMALS, Ink

SMALL = LEGEND | {"font": {"size": 12}}
SYMBOLS = {"plain": "square", "strategy": "circle", "profile": "diamond", "settings": "star", "oracle": "cross"}


def precision_recall(rows: Sequence[Row], curves: Sequence[Curve], *, dark: bool) -> dict[str, Any]:
    """Precision against recall for every row, with the oracle's line."""
    ink = Ink.of(dark)
    data = [
        theme.trace(
            "lines",
            frontier(curves),
            name="oracle, by weight of recall",
            hoverinfo="skip",
            line={"color": ink.kept, "width": 1.4},
        )
    ]
    for group, symbol in SYMBOLS.items():
        own = [row for row in rows if row["group"] == group]
        if own:
            data.append(
                theme.trace(
                    "markers",
                    ((row["recall"], row["precision"]) for row in own),
                    name=group,
                    hovertext=[_tooltip(row) for row in own],
                    hoverinfo="text",
                    marker={
                        "symbol": symbol,
                        "size": 15 if group == "settings" else 10,
                        "color": ink.kept if group in ("settings", "oracle") else ink.curve,
                        "line": {"width": 1, "color": ink.surface},
                    },
                )
            )
    drawn = ink.axes("recall", "precision")
    drawn["xaxis"] |= THREE_DECIMALS
    drawn["yaxis"] |= THREE_DECIMALS
    return {"data": data, "layout": drawn | {"showlegend": True, "legend": SMALL}}


def kept_counts(counts: Sequence[int], *, dark: bool) -> dict[str, Any]:
    """How many questions keep 0, 1, 2 … chunks with the run's settings."""
    ink = Ink.of(dark)
    data = [
        {
            "type": "bar",
            "x": list(range(len(counts))),
            "y": counts,
            "marker": {"color": ink.kept},
            "hovertemplate": "%{y} questions keep %{x}<extra></extra>",
        }
    ]
    drawn = ink.axes("chunks kept", "questions")
    if max(counts, default=0) < 6:
        # Half a question does not exist.
        drawn["yaxis"]["dtick"] = 1
    return {"data": data, "layout": drawn}


def distances(curves: Sequence[Curve], threshold: float, *, dark: bool) -> dict[str, Any]:
    """The distances of all questions, relevant chunks and others marked, with a line across."""
    ink = Ink.of(dark)
    # An empty point ends each curve.
    places = (place for curve in curves for place in (*enumerate(curve.distances[:SHOWN_RANKS], start=1), (None, None)))
    dropped = theme.mark("dropped", "cutoff").colour(dark=dark)
    data = [
        theme.trace(
            "lines",
            places,
            name="not labelled",
            line={"color": ink.curve, "width": 0.7},
            opacity=0.45,
            hoverinfo="skip",
        )
    ]
    for name, relevant, colour, symbol in (
        ("not relevant", False, dropped, "x-thin-open"),
        ("relevant", True, ink.kept, "circle"),
    ):
        marked = (place for curve in curves for place in curve.labelled(relevant))
        data.append(
            theme.trace(
                "markers",
                marked,
                name=name,
                marker=theme.marker(symbol, 5, colour),
                hovertemplate=f"rank %{{x}}, distance %{{y:.3f}}<extra>{name}</extra>",
            )
        )
    drawn = ink.axes("rank by distance", "distance") | {
        "showlegend": True,
        "legend": SMALL,
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": threshold,
                "y1": threshold,
                "line": {"color": ink.text, "width": 1.4, "dash": "dash"},
            }
        ],
    }
    drawn["yaxis"] |= THREE_DECIMALS
    return {"data": data, "layout": drawn}


def _tooltip(row: Row) -> str:
    f1 = interval_of(row, "f1")
    name = row["variant"]
    name = name if name not in (UNFILTERED, ORACLE) else f"{name}: {row['about']}"
    return (
        f"{name}<br>precision {row['precision']:.3f}, recall {row['recall']:.3f}<br>"
        f"F1 {row['f1']:.3f} ({between_ends(f1) if f1 else ''})"
    )
