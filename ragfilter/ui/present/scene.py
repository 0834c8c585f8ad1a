"""The picture for an audience: every passage by its distance, and what was dropped, layer by layer.
Pure.

Passages that moved since the previous scene are a separate trace, which the style sheet animates.
In the last scene, the passages that are left are spread over the height of the plot, with their
ranks and, where there is room, their titles.
"""

from __future__ import annotations

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
    ink = Ink.of(dark)
    hits = sorted((hit for hit in result.hits if hit.rank > 0), key=lambda hit: hit.rank)
    low = min((hit.distance for hit in hits), default=0.0)
    high = max((hit.distance for hit in hits), default=1.0)
    pixel = 1.12 * max(high - low, 0.05) / TOP
    lanes = [low - pixel * (LANE * (n + 1) + 4) for n in range(len(story.steps))]
    top = low + 1.06 * TOP * pixel
    bottom = low - pixel * (LANE * len(lanes) + 24)
    first, last = sorted((after, after if before is None else before))
    moved = {i for step in story.steps[first:last] for i in step.ids}
    k = min(result.settings.retrieval.k, len(hits))
    fell = {i for step in story.steps for i in step.ids}
    left = [hit for hit in hits if hit.id not in fell] if after >= len(lanes) else []
    alone = _alone(left, low, pixel)
    scene = (story, lanes, after, ink, dark, word, alone)
    whole = {
        "data": [
            _points(result, [hit for hit in hits if hit.id not in moved], *scene),
            _points(result, [hit for hit in hits if hit.id in moved], *scene),
        ],
        "layout": ink.layout(SIZE) | {
            "height": height(story),
            "margin": {"l": 16, "r": 16, "t": ABOVE, "b": BELOW},
            "dragmode": False, "hovermode": "closest",
            "xaxis": {
                "showgrid": False, "zeroline": False, "fixedrange": True, "nticks": 6,
                "range": [-0.5, len(hits) + 1.5], "tickformat": "d",
                "tickfont": {"size": SIZE, "color": ink.muted},
                "title": {"text": "passages, nearest to the question first", "standoff": 6,
                          "font": {"size": SIZE, "color": ink.muted}},
            },
            "yaxis": {"visible": False, "fixedrange": True,
                      "range": [bottom, top]},
            # What a plain search would send.
            "shapes": [{"type": "rect", "x0": 0.4, "x1": k + 0.6, "y0": low - 16 * pixel, "y1": top,
                        "fillcolor": ink.band, "line": {"width": 0}, "layer": "below"}],
            "annotations": _words(k, story, lanes, after, pixel, ink, dark),
        },
    }  # fmt: skip
    return go.Figure(whole, _validate=False)


def _points(
    result: PoolResult,
    hits: list[Hit],
    story: Story,
    lanes: list[float],
    after: int,
    ink: Ink,
    dark: bool,
    word: str,
    alone: dict[str, tuple[float, str]],
) -> dict[str, Any]:
    """One point per passage, in the lane of the step that dropped it, if any; `alone` has the
    height and words of those that have the plot to themselves."""
    fell = {i: n for n, step in enumerate(story.steps) for i in step.ids}
    words = {i: fall.words for fall in story.falls for i in fall.ids}
    kept = {hit.id for hit in result.kept}
    ys, colours, symbols, sizes, told = [], [], [], [], []
    for hit in hits:
        n = fell.get(hit.id)
        title = escape(short_title(hit.chunk.name, 70), quote=False)
        if n is not None and n < after:
            mark = theme.LAYERS[story.steps[n].layer]
            ys.append(lanes[n])
            colours.append(mark.colour(dark=dark))
            symbols.append(mark.symbol)
            sizes.append(11)
        else:
            stays = hit.id in kept and after >= len(lanes)
            mark = theme.OUTCOMES["kept"]
            ys.append(alone[hit.id][0] if hit.id in alone else hit.distance)
            colours.append(mark.colour(dark=dark) if stays else ink.curve)
            symbols.append("circle")
            sizes.append(20 if stays else 10)
        why = word if n is None else counted(words[hit.id], 1)
        told.append(f"<b>{title}</b><br>{escape(why, quote=False)}")
    return {
        "type": "scatter", "mode": "markers+text", "x": [hit.rank for hit in hits], "y": ys,
        "customdata": told,
        "text": [alone[hit.id][1] if hit.id in alone else "" for hit in hits],
        # Where there is more room.
        "textposition": ["middle right" if 2 * hit.rank < len(result.hits) else "middle left"
                         for hit in hits],
        "hovertemplate": "%{customdata}<extra></extra>", "cliponaxis": False,
        "marker": {"opacity": 1, "symbol": symbols, "size": sizes, "color": colours,
                   "line": {"width": 2, "color": colours}},
    }  # fmt: skip


def _alone(left: list[Hit], low: float, pixel: float) -> dict[str, tuple[float, str]]:
    """The height and words of the passages that are left: one line each, the nearest lowest."""
    made = {}
    for n, hit in enumerate(left):
        title = escape(short_title(hit.chunk.name, TITLE_WIDTH), quote=False)
        y = low + 0.94 * TOP * pixel * (n + 0.5) / len(left)
        said = f"{hit.rank} · {title}" if len(left) <= TITLED else str(hit.rank)
        made[hit.id] = y, f"{GAP}{said}{GAP}"
    return made


def _words(
    k: int,
    story: Story,
    lanes: list[float],
    after: int,
    pixel: float,
    ink: Ink,
    dark: bool,
) -> list[dict[str, Any]]:
    """Labels for the band and, above every lane, why its passages are there."""
    first = f"a plain search takes the first {k}"
    left = {"xanchor": "left", "align": "left"}
    notes = [annotation(0.4, 1.0, first, ink.muted, SIZE, yref="paper", hovertext=BAND, **left)]
    for n, step in enumerate(story.steps[:after]):
        mark = theme.LAYERS[step.layer]
        said = escape(step.line, quote=False)
        y = lanes[n] + 14 * pixel
        sign = f'<span style="color:{mark.colour(dark=dark)}">{mark.sign}</span>'
        notes.append(annotation(0.4, y, f"{sign} {said}", ink.text, SIZE, hovertext=FALLEN, **left))
    return notes
