"""The picture for an audience: every passage by its distance, and what was dropped, layer by layer.
Pure.

Passages that moved since the previous scene are a separate trace, which the style sheet animates.
In the last scene, the passages that are left are spread over the height of the plot, with their
ranks and, where there is room, their titles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import plotly.graph_objects as go

from ragfilter.model import Hit, PoolResult
from ragfilter.report.story import Story, counted
from ragfilter.text.titles import short_title
from ragfilter.ui.look import theme
from ragfilter.ui.look.plotting import Ink, annotation

BAND = "The passages in this band would be sent without the filter."
FALLEN = "Each sign below is a passage that was ruled out for this reason; point at one to read it."
SIZE = 18
"""Pixels of the smallest type."""
TOP, LANE = 250, 58
"""Pixels that the curve and each lane below it take."""
ABOVE, BELOW = 34, 52
"""Pixels for the words above and below."""
TITLED = 8
"""How many passages may be left for each to have a line for its title."""
GAP = "\N{EN SPACE}"
TITLE_WIDTH = 26
"""Characters of a title that fit beside a point in the middle of a narrow window."""


def height(story: Story) -> int:
    """Pixels of the whole picture, the same in every scene."""
    return ABOVE + BELOW + TOP + 24 + LANE * len(story.steps)


def plot(
    result: PoolResult,
    story: Story,
    *,
    after: int,
    before: int | None = None,
    dark: bool = False,
    word: str = "needed",
) -> go.Figure:
    """The passages of `result` after the first `after` steps of its story have dropped theirs.
    `before` is the number of steps in the previous scene; `word` is what the others are."""
    return _Scene(result, story, after, dark, word).plot(after if before is None else before)


@dataclass(frozen=True)
class _Scene:
    result: PoolResult
    story: Story
    after: int
    dark: bool
    word: str

    @cached_property
    def hits(self) -> list[Hit]:
        return sorted((hit for hit in self.result.hits if hit.rank > 0), key=lambda hit: hit.rank)

    @cached_property
    def low(self) -> float:
        """The smallest distance."""
        return min((hit.distance for hit in self.hits), default=0.0)

    @cached_property
    def pixel(self) -> float:
        """The difference of distances that is one pixel high."""
        high = max((hit.distance for hit in self.hits), default=1.0)
        return 1.12 * max(high - self.low, 0.05) / TOP

    @cached_property
    def lanes(self) -> list[float]:
        """The heights of the lanes, one for each step."""
        return [self.low - self.pixel * (LANE * (n + 1) + 4) for n in range(len(self.story.steps))]

    @cached_property
    def step_of(self) -> dict[str, int]:
        """The step that drops a passage, by id."""
        return {i: n for n, step in enumerate(self.story.steps) for i in step.ids}

    @cached_property
    def spread(self) -> dict[str, tuple[float, str]]:
        """In the last scene, the height and label of the passages that are left: one line each, the
        nearest lowest."""
        if self.after < len(self.lanes):
            return {}
        left = [hit for hit in self.hits if hit.id not in self.step_of]
        labels = {}
        for n, hit in enumerate(left):
            title = escape(short_title(hit.chunk.name, TITLE_WIDTH), quote=False)
            y = self.low + 0.94 * TOP * self.pixel * (n + 0.5) / len(left)
            label = f"{hit.rank} · {title}" if len(left) <= TITLED else str(hit.rank)
            labels[hit.id] = y, f"{GAP}{label}{GAP}"
        return labels

    def plot(self, before: int) -> go.Figure:
        """The picture; the passages that moved since the scene `before` are a separate trace."""
        ink, pixel, low = Ink.of(self.dark), self.pixel, self.low
        top = low + 1.06 * TOP * pixel
        bottom = low - pixel * (LANE * len(self.lanes) + 24)
        first, last = sorted((self.after, before))
        moved = {i for step in self.story.steps[first:last] for i in step.ids}
        k = min(self.result.settings.retrieval.k, len(self.hits))
        whole = {
            "data": [
                self._points([hit for hit in self.hits if (hit.id in moved) == moves], ink)
                for moves in (False, True)
            ],
            "layout": ink.layout(SIZE) | {
                "height": height(self.story),
                "margin": {"l": 16, "r": 16, "t": ABOVE, "b": BELOW},
                "dragmode": False, "hovermode": "closest",
                "xaxis": {
                    "showgrid": False, "zeroline": False, "fixedrange": True, "nticks": 6,
                    "range": [-0.5, len(self.hits) + 1.5], "tickformat": "d",
                    "tickfont": {"size": SIZE, "color": ink.muted},
                    "title": {"text": "passages, nearest to the question first", "standoff": 6,
                              "font": {"size": SIZE, "color": ink.muted}},
                },
                "yaxis": {"visible": False, "fixedrange": True, "range": [bottom, top]},
                # What a plain search would send.
                "shapes": [{"type": "rect", "x0": 0.4, "x1": k + 0.6, "y0": low - 16 * pixel,
                            "y1": top, "fillcolor": ink.band, "line": {"width": 0},
                            "layer": "below"}],
                "annotations": self._notes(k, ink),
            },
        }  # fmt: skip
        return go.Figure(whole, _validate=False)

    def _points(self, hits: list[Hit], ink: Ink) -> dict[str, Any]:
        """One point per passage, in the lane of the step that dropped it, if any."""
        words = {i: fall.words for fall in self.story.falls for i in fall.ids}
        kept = {hit.id for hit in self.result.kept}
        points: list[tuple[float, str, str, int, str]] = []
        for hit in hits:
            n = self.step_of.get(hit.id)
            title = escape(short_title(hit.chunk.name, 70), quote=False)
            why = self.word if n is None else counted(words[hit.id], 1)
            hover = f"<b>{title}</b><br>{escape(why, quote=False)}"
            if n is not None and n < self.after:
                mark = theme.LAYERS[self.story.steps[n].layer]
                points.append((self.lanes[n], mark.colour(dark=self.dark), mark.symbol, 11, hover))
                continue
            y = self.spread[hit.id][0] if hit.id in self.spread else hit.distance
            stays = hit.id in kept and self.after >= len(self.lanes)
            colour = theme.OUTCOMES["kept"].colour(dark=self.dark) if stays else ink.curve
            points.append((y, colour, "circle", 20 if stays else 10, hover))
        ys, colours, symbols, sizes, hovers = zip(*points, strict=True) if points else ((),) * 5
        return {
            "type": "scatter", "mode": "markers+text", "x": [hit.rank for hit in hits],
            "y": list(ys), "customdata": list(hovers),
            "text": [self.spread[hit.id][1] if hit.id in self.spread else "" for hit in hits],
            # Where there is more room.
            "textposition": ["middle right" if 2 * hit.rank < len(self.result.hits)
                             else "middle left" for hit in hits],
            "hovertemplate": "%{customdata}<extra></extra>", "cliponaxis": False,
            "marker": {"opacity": 1, "symbol": list(symbols), "size": list(sizes),
                       "color": list(colours), "line": {"width": 2, "color": list(colours)}},
        }  # fmt: skip

    def _notes(self, k: int, ink: Ink) -> list[dict[str, Any]]:
        """Labels for the band and, above every lane, why its passages are there."""
        first = f"a plain search takes the first {k}"
        left = {"xanchor": "left", "align": "left"}
        notes = [annotation(0.4, 1.0, first, ink.muted, SIZE, yref="paper", hovertext=BAND, **left)]
        for y, step in zip(self.lanes[: self.after], self.story.steps, strict=False):
            mark = theme.LAYERS[step.layer]
            sign = f'<span style="color:{mark.colour(dark=self.dark)}">{mark.sign}</span>'
            line = f"{sign} {escape(step.line, quote=False)}"
            y += 14 * self.pixel
            notes.append(annotation(0.4, y, line, ink.text, SIZE, hovertext=FALLEN, **left))
        return notes
