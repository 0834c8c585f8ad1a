"""Small static plots, as coordinates for SVGs in the templates. Pure.

A chart library would add megabytes to every report, mostly for interaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ragfilter.evaluate.crossval import Interval
from ragfilter.results.rows import ChunkRow

WIDTH = 680
TOP, ROW = 8.0, 20
UNIT = (0.0, 0.25, 0.5, 0.75, 1.0)

At = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """A mark with its tooltip, or a label. `css` has the colour of a mark or the alignment of a label."""

    x: float
    y: float
    css: str
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points, or the area it encloses if `css` fills it."""

    css: str
    points: tuple[At, ...]


@dataclass(slots=True)
class Drawing:
    """The content of an SVG of `width` × `height`. `about` describes it in words.

    `x` and `y` map the ranges of the two axes, from first to last value, to positions."""

    about: str
    xs: At
    ys: At
    height: float
    right: float = WIDTH - 10
    left: float = 46
    top: float = 18
    below: float = 34
    width: int = WIDTH
    points: list[Point] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    labels: list[Point] = field(default_factory=list)

    def x(self, value: float) -> float:
        low, high = self.xs
        return round(self.left + (self.right - self.left) * (value - low) / (high - low or 1), 1)

    def y(self, value: float) -> float:
        low, high = self.ys
        bottom = self.height - self.below
        return round(bottom - (bottom - self.top) * (value - low) / (high - low or 1), 1)

    def line(self, css: str, points: Sequence[At]) -> None:
        self.lines.append(Line(css, tuple((self.x(x), self.y(y)) for x, y in points)))

    def box(self, css: str, x: At, y: At) -> None:
        """A filled rectangle between two values on each axis."""
        self.line(css, [(x[0], y[0]), (x[0], y[1]), (x[1], y[1]), (x[1], y[0])])

    def label(self, x: float, y: float, css: str, text: str) -> None:
        self.labels.append(Point(x, y, css, text))

    def grid(self, ys: Sequence[float], form: str, name: str) -> None:
        """Labelled horizontal lines at these values, with the name of the axis above them."""
        for y in ys:
            self.line("grid", [(self.xs[0], y), (self.xs[1], y)])
            self.label(self.left - 6, self.y(y) + 4, "end", f"{y:{form}}")
        self.label(self.left, self.top - 8, "start", name)

    def under(self, xs: Sequence[float], name: str) -> None:
        """Labels for these values below the frame, and the name of the axis below them."""
        bottom = self.height - self.below
        for x in xs:
            self.label(self.x(x), bottom + 15, "middle", f"{x:g}")
        self.label((self.left + self.right) / 2, bottom + 30, "middle", name)


def curve(rows: Sequence[ChunkRow], k: int) -> Drawing | None:
    """Every hit by rank and distance, in the colour of the layer that dropped it, if any; None without hits."""
    ranked = [row for row in rows if row.rank > 0]
    if not ranked:
        return None
    low, high = min(r.distance for r in ranked), max(r.distance for r in ranked)
    last, kept = max(row.rank for row in ranked), sum(row.kept for row in ranked)
    about = f"{len(ranked)} chunks by distance to the question; {kept} are kept."
    drawing = Drawing(about, (0.5, last + 0.5), (low, high), 220)
    drawing.box("band", (0.5, min(k, last) + 0.5), (low, high))
    drawing.grid([low, (low + high) / 2, high], ".3f", "distance")
    drawing.under([1, last] if last > 1 else [1], "rank, nearest first")
    for row in sorted(ranked, key=lambda row: row.kept):
        css = "kept" if row.kept else f"layer-{row.layer}"
        tooltip = f"{row.rank}. {row.title}: {row.reason}"
        drawing.points.append(Point(drawing.x(row.rank), drawing.y(row.distance), css, tooltip))
    return drawing


def intervals(rows: Sequence[tuple[str, Interval]], strong: str = "") -> Drawing:
    """The mean of every row with its interval, from 0 to 1."""
    about = "Mean F1 of every row with its 95% interval."
    bottom = TOP + ROW * len(rows)
    drawing = Drawing(about, (0, 1), (0, 1), bottom + 14, left=190, right=WIDTH - 60)
    for mark in UNIT:
        x = drawing.x(mark)
        drawing.lines.append(Line("grid", ((x, 14), (x, bottom + 8))))
        drawing.label(x, 10, "middle", f"{mark:g}")
    for place, (name, value) in enumerate(rows, start=1):
        y, css = TOP + ROW * place, "kept" if name == strong else "curve"
        if value.ends is not None:
            first, last = map(drawing.x, value.ends)
            drawing.lines.append(Line(css, ((first, y), (last, y))))
        drawing.points.append(Point(drawing.x(value.mean), y, css, f"{name}: {value.mean:.3f}"))
        drawing.label(drawing.left - 10, y + 4, "end strong" if name == strong else "end", name)
        drawing.label(WIDTH - 4, y + 4, "end", f"{value.mean:.3f}")
    return drawing


def tradeoff(
    rows: Sequence[tuple[str, float, float]], oracle: Sequence[At], named: Collection[str], strong: str = ""
) -> Drawing:
    """Precision against recall for every row (name, recall, precision), with the oracle's line.
    Rows in `named` are labelled."""
    drawing = Drawing("Precision against recall of every row.", (0, 1), (0, 1), 330, right=WIDTH - 130)
    drawing.grid(UNIT, "g", "precision")
    for mark in UNIT:
        drawing.line("grid", [(mark, 0), (mark, 1)])
    drawing.line("kept", oracle)
    drawing.under(UNIT, "recall")
    for name, recall, precision in sorted(rows, key=lambda row: row[0] == strong):
        x, y = drawing.x(recall), drawing.y(precision)
        tooltip = f"{name}: precision {precision:.3f}, recall {recall:.3f}"
        drawing.points.append(Point(x, y, "kept" if name == strong else "curve", tooltip))
        if name in named:
            drawing.label(x + 9, y + 4, "start strong" if name == strong else "start", name)
    return drawing


def gains(values: Sequence[float]) -> Drawing | None:
    """The gain or loss of every question, greatest gain first; None without questions."""
    ordered = sorted(values, reverse=True)
    if not ordered:
        return None
    most, won = max(max(map(abs, ordered)), 1e-9), sum(v > 0 for v in ordered)
    about = f"F1 of B less A for {len(ordered)} questions; {won} gain."
    drawing = Drawing(about, (0, len(ordered)), (-most, most), 150, below=14)
    drawing.grid([most, 0, -most], "+.2f", "ΔF1")
    for n, gain in enumerate(ordered):
        if gain:
            drawing.box(f"bar {'kept' if gain > 0 else 'lost'}", (n + 0.1, n + 0.9), (0, gain))
    return drawing
