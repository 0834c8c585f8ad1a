"""Small static plots, as coordinates for SVGs in the templates. Pure.

A chart library would add megabytes to every report, mostly for interaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ragfilter.evaluate.crossval import Interval
from ragfilter.report import ChunkRow

WIDTH = 680
ROW = 20
UNIT = (0.0, 0.25, 0.5, 0.75, 1.0)

At = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """A mark. `css` names its colour; `tooltip` is its tooltip."""

    x: float
    y: float
    css: str
    tooltip: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points, or the area it encloses if `css` fills it."""

    css: str
    points: tuple[At, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """The content of an SVG of `width` × `height`. `about` describes it in words."""

    height: float
    about: str
    points: tuple[Point, ...] = ()
    lines: tuple[Line, ...] = ()
    texts: tuple[Point, ...] = ()
    width: int = WIDTH


@dataclass(frozen=True, slots=True)
class Axes:
    """Maps the ranges of two axes, from first to last value, to positions in a drawing."""

    xs: At
    ys: At
    height: float
    right: float = WIDTH - 10
    left: float = 46
    top: float = 18
    below: float = 34

    def x(self, value: float) -> float:
        low, high = self.xs
        return round(self.left + (self.right - self.left) * (value - low) / (high - low or 1), 1)

    def y(self, value: float) -> float:
        low, high = self.ys
        bottom = self.height - self.below
        return round(bottom - (bottom - self.top) * (value - low) / (high - low or 1), 1)

    def at(self, x: float, y: float) -> At:
        return self.x(x), self.y(y)

    def line(self, css: str, points: Sequence[At]) -> Line:
        return Line(css, tuple(self.at(*each) for each in points))

    def box(self, css: str, x: At, y: At) -> Line:
        """A filled rectangle between two values on each axis."""
        return self.line(css, [(x[0], y[0]), (x[0], y[1]), (x[1], y[1]), (x[1], y[0])])

    def grid(self, ys: Sequence[float], form: str, name: str = "") -> tuple[list[Line], list[Point]]:
        """Labelled horizontal lines at these values, with the name of the axis above them."""
        lines = [self.line("grid", [(self.xs[0], y), (self.xs[1], y)]) for y in ys]
        labels = [Point(self.left - 6, self.y(y) + 4, "end", label=f"{y:{form}}") for y in ys]
        return lines, [*labels, Point(self.left, self.top - 8, "start", label=name)]

    def under(self, xs: Sequence[float], name: str) -> list[Point]:
        """Labels for these values below the frame, and the name of the axis below them."""
        middle = (self.left + self.right) / 2
        at = self.height - self.below
        labels = [Point(self.x(x), at + 15, "middle", label=f"{x:g}") for x in xs]
        return [*labels, Point(middle, at + 30, "middle", label=name)]


def curve(rows: Sequence[ChunkRow], k: int) -> Drawing:
    """Every hit by rank and distance, in the colour of the layer that dropped it, if any."""
    ranked = [row for row in rows if row.rank > 0]
    if not ranked:
        return Drawing(0, "")
    low, high = min(r.distance for r in ranked), max(r.distance for r in ranked)
    last = max(row.rank for row in ranked)
    frame = Axes((0.5, last + 0.5), (low, high), 220)
    lines, texts = frame.grid([low, (low + high) / 2, high], ".3f", "distance")
    band = frame.box("band", (0.5, min(k, last) + 0.5), (low, high))
    points = [
        Point(
            *frame.at(row.rank, row.distance),
            "kept" if row.kept else f"layer-{row.layer}",
            f"{row.rank}. {row.title}: {row.reason}",
        )
        for row in sorted(ranked, key=lambda row: row.kept)
    ]
    texts += frame.under([1, last] if last > 1 else [1], "rank, nearest first")
    kept = sum(row.kept for row in ranked)
    about = f"{len(ranked)} chunks by distance to the question; {kept} are kept."
    return Drawing(frame.height, about, tuple(points), (band, *lines), tuple(texts))


def intervals(rows: Sequence[tuple[str, Interval]], strong: str = "") -> Drawing:
    """The mean of every row with its interval, from 0 to 1."""
    frame = Axes((0, 1), (0, 1), _row(len(rows)) + 14, left=190, right=WIDTH - 60)
    points, lines, texts = [], [], []
    for mark in UNIT:
        x = frame.x(mark)
        lines.append(Line("grid", ((x, 14), (x, _row(len(rows)) + 8))))
        texts.append(Point(x, 10, "middle", label=f"{mark:g}"))
    for place, (name, value) in enumerate(rows, start=1):
        y, css = _row(place), "kept" if name == strong else "curve"
        if value.ends is not None:
            first, last = map(frame.x, value.ends)
            lines.append(Line(css, ((first, y), (last, y))))
        points.append(Point(frame.x(value.mean), y, css, f"{name}: {value.mean:.3f}"))
        bold = " strong" if name == strong else ""
        texts += [
            Point(frame.left - 10, y + 4, f"end{bold}", label=name),
            Point(WIDTH - 4, y + 4, "end", label=f"{value.mean:.3f}"),
        ]
    about = "Mean F1 of every row with its 95% interval."
    return Drawing(frame.height, about, tuple(points), tuple(lines), tuple(texts))


def tradeoff(
    rows: Sequence[tuple[str, float, float]], oracle: Sequence[At], named: Collection[str], strong: str = ""
) -> Drawing:
    """Precision against recall for every row (name, recall, precision), with the oracle's line.
    Rows in `named` are labelled."""
    frame = Axes((0, 1), (0, 1), 330, right=WIDTH - 130)
    lines, texts = frame.grid(UNIT, "g", "precision")
    lines += [frame.line("grid", [(x, 0), (x, 1)]) for x in UNIT]
    lines.append(frame.line("kept", oracle))
    texts += frame.under(UNIT, "recall")
    points = []
    for name, recall, precision in sorted(rows, key=lambda row: row[0] == strong):
        x, y = frame.at(recall, precision)
        tooltip = f"{name}: precision {precision:.3f}, recall {recall:.3f}"
        points.append(Point(x, y, "kept" if name == strong else "curve", tooltip))
        if name in named:
            bold = " strong" if name == strong else ""
            texts.append(Point(x + 9, y + 4, f"start{bold}", label=name))
    about = "Precision against recall of every row."
    return Drawing(frame.height, about, tuple(points), tuple(lines), tuple(texts))


def gains(values: Sequence[float]) -> Drawing:
    """The gain or loss of every question, greatest gain first."""
    ordered = sorted(values, reverse=True)
    if not ordered:
        return Drawing(0, "")
    most = max(max(map(abs, ordered)), 1e-9)
    frame = Axes((0, len(ordered)), (-most, most), 150, below=14)
    lines, texts = frame.grid([most, 0, -most], "+.2f", "ΔF1")
    lines += [
        frame.box(f"bar {'kept' if gain > 0 else 'lost'}", (n + 0.1, n + 0.9), (0, gain))
        for n, gain in enumerate(ordered)
        if gain
    ]
    won = sum(v > 0 for v in ordered)
    about = f"F1 of B less A for {len(ordered)} questions; {won} gain."
    return Drawing(frame.height, about, (), tuple(lines), tuple(texts))


def _row(place: int) -> float:
    return 8.0 + ROW * place
