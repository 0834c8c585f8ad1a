"""Small static plots, as coordinates for an SVG that the templates write. Pure.

A chart library would add megabytes to every report, mostly for interaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragfilter.evaluate.crossval import Interval
from ragfilter.report import Row, short_title
from ragfilter.report.contrast import Contrast

WIDTH = 680
CURVE = 210
SQUARE = 330
ROW = 20
MOST_PLACES = 25
TITLE = 42


@dataclass(frozen=True, slots=True)
class Point:
    """One mark: `css` names its colour; `told` is what a tooltip says."""

    x: float
    y: float
    css: str
    told: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    css: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """What an SVG of `width` × `height` holds. `about` says it in words."""

    height: float
    about: str
    points: tuple[Point, ...] = ()
    lines: tuple[Line, ...] = ()
    texts: tuple[Point, ...] = ()
    band: float = 0.0
    """How far from the left the band of a plain search reaches."""
    width: int = WIDTH


def curve(rows: Sequence[Row], k: int) -> Drawing:
    """Every hit by rank and distance: kept, or in the colour of the layer that dropped it."""
    found = [row for row in rows if row.rank > 0]
    if not found:
        return Drawing(0, "")
    low, high = min(r.distance for r in found), max(r.distance for r in found)
    room = max(high - low, 1e-9)
    last = max(row.rank for row in found)
    left, right, top, bottom = 46, WIDTH - 10, 14, CURVE - 26

    def x(rank: float) -> float:
        return round(left + (right - left) * (rank - 0.5) / last, 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * (value - low) / room, 1)

    points = tuple(
        Point(x(row.rank), y(row.distance), _css(row), f"{row.rank}. {row.title}: {row.reason}")
        for row in sorted(found, key=lambda row: row.kept)
    )
    ticks = [low, (low + high) / 2, high]
    lines = tuple(Line(left, y(v), right, y(v), "grid") for v in ticks)
    texts = [Point(left - 6, y(v) + 4, "end", label=f"{v:.3f}") for v in ticks]
    texts += [
        Point(x(1), CURVE - 8, "start", label="nearest first: 1"),
        Point(right, CURVE - 8, "end", label=str(last)),
    ]
    kept = sum(row.kept for row in found)
    about = f"{len(found)} passages by distance to the question; {kept} are kept."
    return Drawing(CURVE, about, points, lines, tuple(texts), band=x(min(k, last) + 0.5))


def lists(contrast: Contrast) -> Drawing:
    """The two ranked lists, joined where both keep a chunk."""
    places = {"a": {}, "b": {}}  # type: dict[str, dict[str, int]]
    points, texts, lines = [], [], []
    left, right = 0.44 * WIDTH, 0.56 * WIDTH
    for each in contrast.pairings:
        for letter, row in (("a", each.a), ("b", each.b)):
            if row is None or row.place is None or row.place > MOST_PLACES:
                continue
            places[letter][each.id] = row.place
            x, anchor = (left, "end") if letter == "a" else (right, "start")
            y = _row(row.place)
            css = "kept" if each.keeper == "both" else "alone"
            points.append(Point(x, y, css, each.title, str(row.place)))
            shift = -12 if letter == "a" else 12
            texts.append(Point(x + shift, y + 4, anchor, label=short_title(each.title, TITLE)))
    for i, place in places["a"].items():
        if i in places["b"]:
            lines.append(Line(left, _row(place), right, _row(places["b"][i]), "kept"))
    longest = max((p for own in places.values() for p in own.values()), default=0)
    texts += [
        Point(left, 12, "middle strong", label="A"),
        Point(right, 12, "middle strong", label="B"),
    ]
    both = len(contrast.only("both"))
    return Drawing(
        _row(longest) + 12, f"The two ranked lists; {both} chunks are in both.",
        tuple(points), tuple(lines), tuple(texts),
    )  # fmt: skip


def intervals(rows: Sequence[tuple[str, Interval]], strong: str = "") -> Drawing:
    """A mean with its interval for every row, from 0 to 1."""
    left, right = 190, WIDTH - 60
    points, lines, texts = [], [], []
    for mark in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = left + (right - left) * mark
        lines.append(Line(x, 14, x, _row(len(rows)) + 8, "grid"))
        texts.append(Point(x, 10, "middle", label=f"{mark:g}"))
    for place, (name, value) in enumerate(rows, start=1):
        y, css = _row(place), "kept" if name == strong else "curve"
        low, mean, high = (round(left + (right - left) * v, 1)
                           for v in (value.low, value.mean, value.high))  # fmt: skip
        lines.append(Line(low, y, high, y, css))
        points.append(Point(mean, y, css, f"{name}: {value.mean:.3f}"))
        texts.append(
            Point(left - 10, y + 4, f"end{' strong' if name == strong else ''}", label=name)
        )
        texts.append(Point(WIDTH - 4, y + 4, "end", label=f"{value.mean:.3f}"))
    return Drawing(
        _row(len(rows)) + 14, "Mean F1 of every row with its 95% interval.",
        tuple(points), tuple(lines), tuple(texts),
    )  # fmt: skip


def tradeoff(
    rows: Sequence[tuple[str, Interval, Interval]],
    fixed: Sequence[tuple[float, float]],
    oracle: Sequence[tuple[float, float]],
    named: Collection[str],
    strong: str = "",
) -> Drawing:
    """Precision against recall of every row (name, recall, precision), with the lines of all fixed
    k and of the oracle; those in `named` have their name beside them."""
    left, right, top, bottom = 46, WIDTH - 130, 14, SQUARE - 34

    def x(recall: float) -> float:
        return round(left + (right - left) * recall, 1)

    def y(precision: float) -> float:
        return round(bottom - (bottom - top) * precision, 1)

    lines, texts = [], []
    for mark in (0.0, 0.25, 0.5, 0.75, 1.0):
        lines += [Line(x(mark), top, x(mark), bottom, "grid"),
                  Line(left, y(mark), right, y(mark), "grid")]  # fmt: skip
        texts += [Point(x(mark), bottom + 14, "middle", label=f"{mark:g}"),
                  Point(left - 6, y(mark) + 4, "end", label=f"{mark:g}")]  # fmt: skip
    texts += [Point((left + right) / 2, SQUARE - 4, "middle", label="recall"),
              Point(left, 9, "start", label="precision")]  # fmt: skip
    for css, points in (("fixed", fixed), ("kept", oracle)):
        lines += [Line(x(a[0]), y(a[1]), x(b[0]), y(b[1]), css) for a, b in pairwise(points)]
    marks = []
    for name, recall, precision in sorted(rows, key=lambda row: row[0] == strong):
        at = x(recall.mean), y(precision.mean)
        said = f"{name}: precision {precision.mean:.3f}, recall {recall.mean:.3f}"
        marks.append(Point(*at, "kept" if name == strong else "curve", said))
        if name in named:
            css = f"start{' strong' if name == strong else ''}"
            texts.append(Point(at[0] + 9, at[1] + 4, css, label=name))
    return Drawing(
        SQUARE, "Precision against recall of every row.", tuple(marks), tuple(lines), tuple(texts)
    )


def gains(values: Sequence[float]) -> Drawing:
    """What every query gains or loses, the greatest gain first."""
    ordered = sorted(values, reverse=True)
    if not ordered:
        return Drawing(0, "")
    most = max(max(abs(v) for v in ordered), 1e-9)
    left, middle, room = 46, 70, 56
    step = (WIDTH - left - 10) / len(ordered)
    lines = [Line(left, middle, WIDTH - 10, middle, "grid")]
    for n, value in enumerate(ordered):
        x = round(left + step * (n + 0.5), 1)
        y = round(middle - room * value / most, 1)
        lines.append(Line(x, middle, x, y, "bar kept" if value > 0 else "bar lost"))
    texts = tuple(
        Point(left - 6, middle - room * v / most + 4, "end", label=f"{v:+.2f}" if v else "0")
        for v in (most, 0.0, -most)
    )
    won = sum(v > 0 for v in ordered)
    about = f"F1 of B less A for {len(ordered)} questions; {won} gain."
    return Drawing(140, about, (), tuple(lines), texts)


def _row(place: int) -> float:
    return 8.0 + ROW * place


def _css(row: Row) -> str:
    return "kept" if row.kept else f"layer-{row.layer}"
