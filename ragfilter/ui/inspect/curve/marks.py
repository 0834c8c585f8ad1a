"""The marks around the curve's points: cliffs, cut, fallback, k, and the steps. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import CutoffDetail
from ragfilter.settings.schema import Cutoff
from ragfilter.text import numbers
from ragfilter.ui.look.plotting import Ink, annotation

Shapes = list[dict[str, Any]]
STEPS, LANE, CURVE = 0.2, 0.24, 0.28
"""Where the strip of steps ends and the curve begins, as fractions of the height, with labels in
between."""
NARROWEST, CHARACTER, APART = 200, 6, 6
"""Pixels: the plot in a window 400 wide, the widest character in the lane, and between labels."""


def steps(
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
