"""Two ranked lists, joined if both keep a chunk. If only one keeps it, the other shows the mark of
the layer that dropped it. Pure."""

from __future__ import annotations

from html import escape
from typing import Any

from ragfilter.report import ChunkRow
from ragfilter.report.contrast import Contrast, Pairing, reason
from ragfilter.text.titles import short_title
from ragfilter.ui.look import theme
from ragfilter.ui.look.plotting import Ink, annotation

MOST = 25
"""How many places of each list are drawn."""
ROW, ABOVE, BELOW = 26, 34, 10
"""Pixels per place, above the lists and below them."""
WIDE, NARROW = 34, 22
"""Characters of a title, and of one in a narrow window."""
GAP = "\u00a0" * 5
LEFT, RIGHT, STUB = 0.4, 0.6, 0.07
"""The positions of the lists, and the length of a stub, as fractions of the width."""


def height(contrast: Contrast) -> int:
    """Pixels of the whole plot."""
    return ABOVE + BELOW + ROW * max(_longest(contrast), 1)


def joined(contrast: Contrast, *, dark: bool) -> dict[str, Any]:
    """The two lists. `contrast` keeps at least one chunk."""
    ink = Ink.of(dark)
    xs: list[float | None] = []
    ys: list[float | None] = []
    for each in contrast.only("both"):
        if _drawn(each.a) and _drawn(each.b):
            xs += [LEFT, RIGHT, None]
            ys += [_place(each.a), _place(each.b), None]
    listed = {
        letter: [(e, row) for e in contrast.pairings if (row := _row(e, letter)) and _drawn(row)]
        for letter in ("a", "b")
    }
    data: list[dict[str, Any]] = [
        # The style sheet shows the first or the second, and counts on their places.
        _titles(listed, WIDE),
        _titles(listed, NARROW),
        {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "hoverinfo": "skip",
         "line": {"color": ink.kept, "width": 1.6}, "opacity": 0.7},
    ]  # fmt: skip
    notes = [
        annotation(x, 0, f"<b>{name}</b>", ink.text, xanchor="center", yanchor="middle")
        for x, name in ((LEFT, "A"), (RIGHT, "B"))
    ]
    for x, letter, way in ((LEFT, "a", 1), (RIGHT, "b", -1)):
        data += _points(listed[letter], x, ink)
        data += _stubs(listed[letter], x, way, "b" if letter == "a" else "a", dark)
    axis = {"visible": False, "fixedrange": True}
    layout = ink.layout() | {
        "height": height(contrast), "margin": {"l": 4, "r": 4, "t": 4, "b": 4},
        "xaxis": {**axis, "range": [0, 1]},
        "yaxis": {**axis, "range": [_longest(contrast) + 0.6, -0.6]},
        "annotations": notes, "hovermode": "closest", "dragmode": False,
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _points(listed: list[tuple[Pairing, ChunkRow]], x: float, ink: Ink) -> list[dict[str, Any]]:
    return [{
        "type": "scatter", "mode": "markers+text", "x": [x] * len(listed),
        "y": [_place(row) for _, row in listed],
        "text": [str(row.place) for _, row in listed],
        "textfont": {"color": ink.surface, "size": 11},
        "customdata": [_told(each) for each, _ in listed],
        "hovertemplate": "%{customdata}<extra></extra>",
        "marker": {"size": 20, "symbol": "circle", "color": ink.kept, "opacity": 1},
    }]  # fmt: skip


def _titles(listed: dict[str, list[tuple[Pairing, ChunkRow]]], width: int) -> dict[str, Any]:
    """The titles on the outer sides of the lists, a space off their points."""
    placed = []
    for letter, rows in listed.items():
        for each, row in rows:
            title = escape(short_title(each.title, width), quote=False)
            placed.append(
                (LEFT, _place(row), f"{title}{GAP}", "middle left")
                if letter == "a"
                else (RIGHT, _place(row), f"{GAP}{title}", "middle right")
            )
    xs, ys, texts, sides = zip(*placed, strict=True)
    return {
        "type": "scatter", "mode": "text", "x": xs, "y": ys, "text": texts, "textposition": sides,
        "textfont": {"size": 12}, "hoverinfo": "skip", "cliponaxis": False,
    }  # fmt: skip


def _stubs(
    listed: list[tuple[Pairing, ChunkRow]], x: float, way: int, other: str, dark: bool
) -> list[dict[str, Any]]:
    """A short line from every chunk that the other list lacks to the mark of the layer that dropped
    it."""
    made: list[dict[str, Any]] = []
    for each, row in listed:
        there = _row(each, other)
        if each.keeper == "both" or there is None:
            continue
        mark = theme.LAYERS[there.layer]
        colour, end, y = mark.colour(dark=dark), x + way * STUB, _place(row)
        made.append({
            "type": "scatter", "mode": "lines", "x": [x, end], "y": [y, y], "hoverinfo": "skip",
            "line": {"color": colour, "width": 1, "dash": "dot"},
        })  # fmt: skip
        made.append({
            "type": "scatter", "mode": "markers", "x": [end], "y": [y],
            "customdata": [_told(each)], "hovertemplate": "%{customdata}<extra></extra>",
            "marker": {"symbol": mark.symbol, "size": 9, "color": colour,
                       "line": {"color": colour, "width": 1.6}},
        })  # fmt: skip
    return made


def _told(each: Pairing) -> str:
    title = escape(short_title(each.title, 60), quote=False)
    said = [f"{letter.upper()}: {escape(reason(_row(each, letter)), quote=False)}"
            for letter in ("a", "b")]  # fmt: skip
    return "<br>".join([f"<b>{title}</b>", *said])


def _row(each: Pairing, letter: str) -> ChunkRow | None:
    return each.a if letter == "a" else each.b


def _place(row: ChunkRow | None) -> int:
    return 0 if row is None or row.place is None else row.place


def _drawn(row: ChunkRow | None) -> bool:
    return 0 < _place(row) <= MOST


def _longest(contrast: Contrast) -> int:
    places = [_place(row) for each in contrast.pairings for row in (each.a, each.b)]
    return min(max(places, default=0), MOST)
